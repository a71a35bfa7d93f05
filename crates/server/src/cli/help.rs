//! The parser of the command line with its help texts. Settings work with every command, but only the commands that the
//! service is configured with list them: elsewhere they would hide the command's own options.

use clap::{Args, Command, CommandFactory, Id};

use super::Cli;
use crate::config::Options;

/// Commands whose help lists the settings.
const CONFIGURED: [&str; 3] = ["serve", "dev", "check"];
/// Commands that use no settings.
const WITHOUT_SETTINGS: [&str; 3] = ["openapi", "listen", "help"];
const HINT: &str = "Settings such as --data-dir and --database-url: `foretell help serve`";

/// The parser.
pub fn command() -> Command {
    let mut command = Cli::command();
    // Gives every subcommand its copy of the settings.
    command.build();
    let declared = Options::augment_args(Command::new("settings"));
    let settings: Vec<Id> = declared.get_arguments().map(|arg| arg.get_id().clone()).collect();
    hide_settings(command, &settings)
}

fn hide_settings(command: Command, settings: &[Id]) -> Command {
    let name = command.get_name();
    if WITHOUT_SETTINGS.contains(&name) {
        return command.mut_args(|arg| if settings.contains(arg.get_id()) { arg.hide(true) } else { arg });
    }
    if CONFIGURED.contains(&name) {
        return command;
    }
    command
        .mut_args(|arg| if settings.contains(arg.get_id()) { arg.hide(true) } else { arg })
        .after_help(HINT)
        .mut_subcommands(|subcommand| hide_settings(subcommand, settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help_of(path: &[&str]) -> String {
        let arguments = ["foretell"].iter().chain(path).chain(&["--help"]);
        command().try_get_matches_from(arguments).unwrap_err().to_string()
    }

    #[test]
    fn only_commands_that_are_configured_list_the_settings() {
        for path in [&["serve"][..], &["dev"], &["config", "check"]] {
            let help = help_of(path);
            assert!(help.contains("--trusted-proxies") && help.contains("Settings:"), "{help}");
        }
        for path in [&[][..], &["migrate"], &["deploy"], &["admin"], &["admin", "market", "cancel"]] {
            let help = help_of(path);
            assert!(!help.contains("--trusted-proxies"), "{help}");
            assert!(help.contains("foretell help serve"), "{help}");
        }
        assert!(!help_of(&["openapi"]).contains("--data-dir"));
    }

    #[test]
    fn settings_work_with_every_command() {
        for arguments in [
            ["foretell", "--data-dir", "/x", "admin", "market", "list"],
            ["foretell", "admin", "market", "list", "--data-dir", "/x"],
        ] {
            assert!(command().try_get_matches_from(arguments).is_ok(), "{arguments:?}");
        }
    }

    #[test]
    fn help_is_short_and_begins_with_the_service() {
        let help = help_of(&[]);
        assert!(help.starts_with("Foretell: a prediction-market service"), "{help}");
        assert!(help.lines().count() < 50, "{help}");
        let help = help_of(&["admin", "market", "show"]);
        assert!(help.lines().count() < 30, "{help}");
    }
}
