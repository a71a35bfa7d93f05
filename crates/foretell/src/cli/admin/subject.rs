//! The object of a command, as in `market show ID`. The flag of the same name, `--market ID`, is
//! accepted too.

use std::error::Error;
use std::str::FromStr;

use clap::error::ErrorKind;
use clap::{Arg, ArgGroup, ArgMatches, Args, Command, FromArgMatches};
use domain::ids::{KeyId, MarketId, OrganizationId, PartnerId, ThreadId, TradeId, UserId};
use uuid::Uuid;

/// A kind of object that commands work on.
pub trait Noun {
    /// Type of the object's ids.
    type Id: Copy + FromStr<Err: Into<Box<dyn Error + Send + Sync>>> + Send + Sync + 'static;
    /// Name of the object's flag.
    const NAME: &'static str;
    /// Help text of the argument.
    const HELP: &'static str;
}

macro_rules! nouns {
    ($($noun:ident, $id:ty, $name:literal;)*) => {
        $(
            #[derive(Debug)]
            pub struct $noun;

            impl Noun for $noun {
                type Id = $id;
                const NAME: &'static str = $name;
                const HELP: &'static str = concat!("The ", $name, "'s id");
            }
        )*
    };
}

nouns! {
    Chapter, Uuid, "chapter";
    Key, KeyId, "key";
    Market, MarketId, "market";
    Organization, OrganizationId, "organization";
    Partner, PartnerId, "partner";
    Thread, ThreadId, "thread";
    Trade, TradeId, "trade";
    User, UserId, "user";
}

/// The id of the object.
#[derive(Debug)]
pub struct Subject<N: Noun>(pub N::Id);

const POSITION: &str = "subject";

type Parse<Id> = fn(&str) -> Result<Id, Box<dyn Error + Send + Sync>>;

impl<N: Noun> Args for Subject<N> {
    fn augment_args(command: Command) -> Command {
        let parse: Parse<N::Id> = |text| text.parse().map_err(Into::into);
        // The flag is hidden from the help, because the positional form is preferred.
        let named = Arg::new(N::NAME).long(N::NAME).value_name("ID").hide(true).value_parser(parse);
        let positional = Arg::new(POSITION).value_name("ID").help(N::HELP).value_parser(parse);
        let group = ArgGroup::new("subject or flag").args([POSITION, N::NAME]).required(true);
        command.arg(positional).arg(named).group(group)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<N: Noun> FromArgMatches for Subject<N> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = [POSITION, N::NAME].into_iter().find_map(|name| matches.get_one::<N::Id>(name));
        given.copied().map(Self).ok_or_else(|| clap::Error::new(ErrorKind::MissingRequiredArgument))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Show {
        #[command(flatten)]
        market: Subject<Market>,
    }

    const ID: &str = "0198f3a0-0000-7000-8000-000000000001";

    #[test]
    fn an_id_is_given_by_position_or_by_flag() {
        for args in [vec!["show", ID], vec!["show", "--market", ID]] {
            assert_eq!(Show::try_parse_from(&args).unwrap().market.0.to_string(), ID, "{args:?}");
        }
    }

    #[test]
    fn an_id_is_required_once_and_must_be_an_id() {
        for args in [vec!["show"], vec!["show", ID, "--market", ID], vec!["show", "7"]] {
            assert!(Show::try_parse_from(&args).is_err(), "{args:?}");
        }
    }
}
