//! The command-line parser with its help texts. Settings and role keys work with every command, but
//! only the commands that use them list them. Elsewhere they would hide the command's own options.

use clap::{Args, Command, CommandFactory, Id};

use super::Cli;
use super::admin::RoleKeys;
use crate::config::Settings;

/// Commands whose help lists the settings.
const CONFIGURED: [&str; 3] = ["serve", "dev", "check"];
/// Top-level commands that use no settings, and no name in the audit log.
const WITHOUT_SETTINGS: [&str; 14] = [
    "openapi",
    "listen",
    "markets",
    "quote",
    "buy",
    "sell",
    "trade",
    "positions",
    "claim",
    "events",
    "watch",
    "webhooks",
    "completions",
    "man",
];
/// Commands whose subcommands act as a role, except for those that only read.
const ACTING_AS_ROLES: [&str; 3] = ["market", "role", "executor"];
const READING: [&str; 3] = ["list", "show", "update"];
const HINT: &str = "Settings such as --data-dir and --database-url: `foretell help serve`";

/// Returns the parser.
pub fn command() -> Command {
    let mut command = Cli::command();
    // Copies the global settings to every subcommand, where they can then be hidden.
    command.build();
    let settings = ids_of::<Settings>();
    let unused = [&settings[..], &["config", "actor"].map(Id::from)].concat();
    let command = hide(command, &settings).after_help(HINT).mut_subcommands(|subcommand| {
        let uses_none = WITHOUT_SETTINGS.contains(&subcommand.get_name());
        if uses_none { hide_all(subcommand, &unused) } else { hide_settings(subcommand, &settings) }
    });
    let keys = ids_of::<RoleKeys>();
    command.mut_subcommand("admin", |admin| admin.mut_subcommands(|noun| hide_keys(noun, &keys)))
}

fn ids_of<A: Args>() -> Vec<Id> {
    let declared = A::augment_args(Command::new("arguments"));
    declared.get_arguments().map(|arg| arg.get_id().clone()).collect()
}

fn hide_settings(command: Command, settings: &[Id]) -> Command {
    let name = command.get_name();
    if name == "help" {
        return hide(command, settings);
    }
    if CONFIGURED.contains(&name) {
        return command;
    }
    hide(command, settings).after_help(HINT).mut_subcommands(|subcommand| hide_settings(subcommand, settings))
}

fn hide_all(command: Command, ids: &[Id]) -> Command {
    hide(command, ids).mut_subcommands(|subcommand| hide_all(subcommand, ids))
}

fn hide_keys(noun: Command, keys: &[Id]) -> Command {
    let acts = ACTING_AS_ROLES.contains(&noun.get_name());
    let noun = if acts { noun } else { hide(noun, keys) };
    noun.mut_subcommands(|verb| {
        let is_shown = acts && !READING.contains(&verb.get_name());
        if is_shown { verb } else { hide(verb, keys) }
    })
}

fn hide(command: Command, ids: &[Id]) -> Command {
    command.mut_args(|arg| if ids.contains(arg.get_id()) { arg.hide(true) } else { arg })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help_of(path: &[&str]) -> String {
        let arguments = ["foretell"].iter().chain(path).chain(&["--help"]);
        command().try_get_matches_from(arguments).unwrap_err().to_string()
    }

    #[test]
    fn only_commands_with_settings_list_them() {
        for path in [&["serve"][..], &["dev"], &["config", "check"]] {
            let help = help_of(path);
            assert!(help.contains("--trusted-proxies") && help.contains("Settings:"), "{help}");
        }
        for path in [&[][..], &["migrate"], &["deploy"], &["admin"], &["admin", "market", "cancel"]] {
            let help = help_of(path);
            assert!(!help.contains("--trusted-proxies"), "{help}");
            assert!(help.contains("foretell help serve"), "{help}");
        }
        for path in [&["openapi"][..], &["buy"], &["webhooks", "list"]] {
            let help = help_of(path);
            assert!(!help.contains("--data-dir") && !help.contains("--actor"), "{help}");
        }
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
    fn help_is_short_and_starts_with_the_service() {
        let help = help_of(&[]);
        assert!(help.starts_with("Foretell: a prediction-market service"), "{help}");
        assert!(help.lines().count() < 50, "{help}");
        let help = help_of(&["admin", "market", "show"]);
        assert!(help.lines().count() < 30, "{help}");
    }

    #[test]
    fn only_commands_that_act_as_a_role_list_keys_of_roles() {
        assert!(help_of(&["admin", "market", "resolve"]).contains("--resolver-key-file"));
        for path in [&["admin", "market", "show"][..], &["admin", "user", "create"]] {
            assert!(!help_of(path).contains("--resolver-key-file"), "{path:?}");
        }
    }
}
