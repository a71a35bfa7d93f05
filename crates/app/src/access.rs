//! Who may do what: every use case that a person, a program or the operator can reach, with the
//! doors that lead to it.
//!
//! For example, [`people::issue_api_key`](crate::people::issue_api_key) has one door, `SteppedUp`. So
//! a session without a step-up is refused with `STEP_UP_REQUIRED`, and an API key cannot call it at
//! all, because it takes a `&Person`.
//!
//! The rules themselves are in the use cases. Tests call each of them as every kind of caller and
//! compare the outcome with this table, and fail for a public use case that is missing here. The
//! tables of `docs/custody.md` are written from it.

use domain::ErrorCode;
use domain::key::Scope;

use Door::{
    AdminPasskey, AdminSession, AnyKey, Anyone, Command, Key, OwnerSignature, ProgramKey, Session, SteppedUp,
};

/// Codes of the web application, as its errors spell them.
const ADMIN_REQUIRED: &str = "ADMIN_REQUIRED";
const PASSKEY_REQUIRED: &str = "PASSKEY_REQUIRED";
const STEP_UP_REQUIRED: &str = "STEP_UP_REQUIRED";

/// A kind of caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerKind {
    /// Somebody without a session and without a key.
    Anonymous,
    /// A session whose last step-up is older than five minutes, such as a stolen one.
    Session,
    /// A session within five minutes of its step-up. The credential may be a sign-in key, which
    /// doesn't own the account.
    SteppedUp,
    /// A session of somebody who also holds the key of a current owner of the account.
    Owner,
    /// An API key with all scopes.
    ApiKey,
    /// An API key with all scopes that is marked as an agent's, or the tools for agents.
    Agent,
    /// The session of an admin, without the passkey.
    AdminSession,
    /// An admin with the passkey.
    Admin,
    /// The commands of `foretell admin`, which have the secrets of the deployment.
    Operator,
}

impl CallerKind {
    pub const ALL: [Self; 9] = [
        Self::Anonymous,
        Self::Session,
        Self::SteppedUp,
        Self::Owner,
        Self::ApiKey,
        Self::Agent,
        Self::AdminSession,
        Self::Admin,
        Self::Operator,
    ];

    /// The name in the documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anonymous => "nobody in particular",
            Self::Session => "a session",
            Self::SteppedUp => "a stepped-up session (any sign-in key)",
            Self::Owner => "an owner's key",
            Self::ApiKey => "an API key",
            Self::Agent => "an agent's key",
            Self::AdminSession => "an admin's session",
            Self::Admin => "an admin's passkey",
            Self::Operator => "the operator",
        }
    }

    const fn has_session(self) -> bool {
        !matches!(self, Self::Anonymous | Self::ApiKey | Self::Agent | Self::Operator)
    }

    const fn has_key(self) -> bool {
        matches!(self, Self::ApiKey | Self::Agent)
    }
}

/// A way to a use case, and what the caller must have to pass it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// Nothing: the use case itself proves who calls, or everybody may know the result.
    Anyone,
    /// A session.
    Session,
    /// A session that was stepped up within five minutes.
    SteppedUp,
    /// A signature of a current owner over the act.
    OwnerSignature,
    /// Any API key.
    AnyKey,
    /// An API key with this scope.
    Key(Scope),
    /// An API key with this scope that isn't an agent's.
    ProgramKey(Scope),
    /// The session of an admin.
    AdminSession,
    /// A passkey's assertion of an admin over the act.
    AdminPasskey,
    /// A command of the operator.
    Command,
}

/// What a kind of caller gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Allowed,
    /// The use case refuses it with this code.
    Refused(&'static str),
    /// The caller has nothing to call it with: it takes a `Person`, a `Caller`, or the operator's
    /// context.
    Unreachable,
}

/// What a use case does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Reads,
    /// Only takes power or money at risk away, and so needs no step-up.
    Restricts,
    Acts,
}

/// A use case that a caller can reach.
#[derive(Debug, Clone, Copy)]
pub struct UseCase {
    /// The module and the function.
    pub name: &'static str,
    /// The completion of "can".
    pub act: &'static str,
    pub effect: Effect,
    pub doors: &'static [Door],
}

impl UseCase {
    /// Returns the use case with this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        USE_CASES.iter().find(|it| it.name == name)
    }

    /// Returns what a kind of caller gets.
    pub fn access(&self, kind: CallerKind) -> Access {
        let outcomes = self.doors.iter().map(|door| door.access(kind));
        // The best of the doors counts.
        outcomes.fold(Access::Unreachable, |best, found| match (best, found) {
            (Access::Allowed, _) | (_, Access::Allowed) => Access::Allowed,
            (Access::Refused(_), _) => best,
            (Access::Unreachable, found) => found,
        })
    }
}

impl Door {
    fn access(self, kind: CallerKind) -> Access {
        use CallerKind::{Admin, AdminSession, Agent, Operator, Owner, Session, SteppedUp};
        let admit = |admits: bool, reaches: bool, code: &'static str| match (admits, reaches) {
            (true, _) => Access::Allowed,
            (false, true) => Access::Refused(code),
            (false, false) => Access::Unreachable,
        };
        let (session, key) = (kind.has_session(), kind.has_key());
        match self {
            Self::Anyone => Access::Allowed,
            Self::Session => admit(session, false, ""),
            Self::SteppedUp => admit(matches!(kind, SteppedUp | Owner | Admin), session, STEP_UP_REQUIRED),
            Self::OwnerSignature => {
                admit(matches!(kind, Owner), session, ErrorCode::ValidationFailed.as_str())
            }
            Self::AnyKey | Self::Key(_) => admit(key, false, ""),
            Self::ProgramKey(_) => {
                let is_program = key && !matches!(kind, Agent);
                admit(is_program, key, ErrorCode::OwnerConfirmationRequired.as_str())
            }
            Self::AdminSession => {
                let is_person = matches!(kind, Session | SteppedUp | Owner);
                admit(matches!(kind, AdminSession | Admin), is_person, ADMIN_REQUIRED)
            }
            Self::AdminPasskey => {
                let code = if matches!(kind, AdminSession) { PASSKEY_REQUIRED } else { ADMIN_REQUIRED };
                admit(matches!(kind, Admin), session, code)
            }
            Self::Command => admit(matches!(kind, Operator), false, ""),
        }
    }

    /// The scope that a key must have.
    pub const fn scope(self) -> Option<Scope> {
        match self {
            Self::Key(scope) | Self::ProgramKey(scope) => Some(scope),
            _ => None,
        }
    }
}

const fn reads(name: &'static str, act: &'static str, doors: &'static [Door]) -> UseCase {
    UseCase { name, act, effect: Effect::Reads, doors }
}

const fn restricts(name: &'static str, act: &'static str, doors: &'static [Door]) -> UseCase {
    UseCase { name, act, effect: Effect::Restricts, doors }
}

const fn acts(name: &'static str, act: &'static str, doors: &'static [Door]) -> UseCase {
    UseCase { name, act, effect: Effect::Acts, doors }
}

/// Every use case that somebody can reach, by area.
pub static USE_CASES: &[UseCase] = &[
    // Public data.
    reads("markets::find", "look for a market", &[Anyone]),
    reads("markets::get", "read a market", &[Anyone]),
    reads("markets::read", "read a market past the cache", &[Anyone]),
    reads("markets::history", "read the prices of a market", &[Anyone]),
    reads("markets::quote", "quote a trade", &[Anyone]),
    reads("markets::quote_usdc", "quote a trade of USDC", &[Anyone]),
    reads("trades::warnings_of", "quote a held trade for its warnings", &[Anyone]),
    reads("leaderboard::leaderboard", "read the leaderboard", &[Anyone]),
    reads("leaderboard::of_account", "read a trader's place", &[Anyone]),
    reads("leaderboard::name_of", "read a trader's public name", &[Anyone]),
    reads("feed::first_position", "find the start of a market's events", &[Anyone]),
    reads("feed::read_market", "read a market's events", &[Anyone]),
    reads("feed::newest_prices", "follow the prices of markets", &[Anyone]),
    reads("accounts::balance_of", "read the USDC of an address", &[Anyone]),
    reads("trading_stop::find", "read why nobody can trade", &[Anyone]),
    reads("health::readiness", "read if the service is ready", &[Anyone]),
    // Signing in.
    acts("passkeys::issue_challenge", "ask for a challenge", &[Anyone]),
    reads("passkeys::wallet_text", "read the text that a wallet signs", &[Anyone]),
    acts("people::sign_up", "sign up with a new passkey or wallet", &[Anyone]),
    acts("sessions::sign_in", "sign in with a passkey or wallet", &[Anyone]),
    acts("sample_users::sign_in", "sign in as a sample user of a demonstration", &[Anyone]),
    reads("sessions::find", "use the token of a session", &[Anyone]),
    reads("keys::authenticate", "use an API key", &[Anyone]),
    reads("keys::check_again", "keep a stream open", &[AnyKey]),
    acts("sessions::step_up", "step up, with a passkey or wallet", &[Session]),
    reads("sessions::list", "list the sessions", &[Session]),
    restricts("sessions::sign_out", "sign out", &[Session]),
    acts("sessions::end", "end another session", &[SteppedUp]),
    acts("sessions::end_others", "end all other sessions", &[SteppedUp]),
    // Passkeys, wallets and names.
    reads("people::list_credentials", "list the passkeys and wallets", &[Session]),
    acts("people::add_credential", "add a passkey or wallet that signs in", &[SteppedUp]),
    acts("people::remove_credential", "remove a passkey or wallet", &[SteppedUp]),
    acts("people::rename_credential", "rename a passkey or wallet", &[Session]),
    acts("people::rename", "change the name", &[Session]),
    reads("people::find_public_name", "read the public name", &[Session]),
    acts("people::set_public_name", "change the public name", &[Session]),
    // Trading.
    acts("people::create_trade", "create trades on the site, within its caps", &[Session]),
    acts("trades::create", "create trades within the caps of the key", &[Key(Scope::TradesWrite)]),
    acts(
        "trades::confirm",
        "confirm a held trade of a program with its token",
        &[ProgramKey(Scope::TradesWrite)],
    ),
    acts("people::confirm_trade", "confirm any held trade on its page", &[SteppedUp]),
    acts("redemptions::claim", "claim a position, which pays the account", &[Key(Scope::TradesWrite)]),
    acts("redemptions::claim_own", "claim positions on the site, which pays the account", &[Session]),
    reads("redemptions::list_claiming", "list the claims that are not paid yet", &[Session]),
    restricts("people::pause_trading", "pause trading with all keys and on the site", &[Session]),
    acts("people::resume_trading", "resume trading on the site", &[SteppedUp]),
    restricts("keys::pause", "pause its own trading", &[Key(Scope::TradesWrite)]),
    acts("faucet::give", "get test money", &[Session]),
    acts("test_clock::make_move", "move the clock of a test service", &[AnyKey]),
    // The account's data.
    reads("accounts::account_of", "read the address of the account", &[Session]),
    reads("accounts::owners", "read the owners of the account", &[Session, Command]),
    reads("accounts::stored_owners", "read the owners as they were read last", &[Session, Command]),
    reads("people::count_other_owners", "count the owners that are not the person's own keys", &[Session]),
    reads("portfolio::of_person", "read the portfolio on the site", &[Session]),
    reads("portfolio::summary", "read the portfolio", &[Key(Scope::PortfolioRead)]),
    reads("portfolio::positions", "read the positions", &[Key(Scope::PortfolioRead)]),
    reads("portfolio::read_over_time", "read value and profit over time", &[Session]),
    reads("portfolio::list_deposits", "list deposits and withdrawals", &[Session]),
    reads("portfolio::export_trades", "download the trades of a year", &[SteppedUp]),
    reads("readiness::of_key", "read what the key still needs to trade", &[Key(Scope::PortfolioRead)]),
    reads("for_you::list_for_you", "list markets for the person", &[Session]),
    reads("feed::read", "read the events of the user", &[AnyKey]),
    reads("usage::of_key", "read the usage of a key", &[Session, AnyKey]),
    reads("usage::spend", "read what a key has spent", &[AnyKey]),
    reads("usage::history", "read the usage over time", &[Session]),
    reads("request_log::search", "read the log of requests", &[Session]),
    reads("user_log::list", "read what was done with the account", &[Session, AdminSession, Command]),
    // API keys and webhooks.
    reads("keys::list_own", "list the API keys", &[Session]),
    reads("keys::find_own", "read an API key, without its secret", &[Session]),
    acts("people::issue_api_key", "issue an API key", &[SteppedUp]),
    acts("people::set_api_key_access", "change the addresses or the end of an API key", &[SteppedUp]),
    restricts("people::lower_api_key_caps", "lower the caps of an API key", &[Session]),
    restricts("people::pause_api_key", "pause an API key", &[Session]),
    acts("people::resume_api_key", "resume an API key", &[SteppedUp]),
    restricts("people::revoke_api_key", "revoke an API key", &[Session]),
    restricts("people::mark_api_key_as_agent", "mark an API key as an agent's", &[Session]),
    acts("people::set_api_key_webhook", "change the webhook URL of an API key", &[SteppedUp]),
    acts("people::rotate_api_key_secret", "replace the webhook secret of an API key", &[SteppedUp]),
    acts("people::send_api_key_test", "send a test event to the receiver of an API key", &[Session]),
    acts("people::redeliver_event", "redeliver an event to the receiver of an API key", &[Session]),
    reads("webhooks::endpoint", "read the state of a receiver", &[Session, AnyKey]),
    acts("webhooks::rotate_secret", "replace its own webhook secret", &[Key(Scope::WebhooksManage)]),
    acts("webhooks::send_test", "send a test event to its own receiver", &[Key(Scope::WebhooksManage)]),
    acts("webhooks::redeliver", "redeliver an event of the user", &[Key(Scope::WebhooksManage)]),
    // Acts of owners.
    acts(
        "people::prepare_act",
        "prepare an act, such as a withdrawal, for the signature of an owner",
        &[Session],
    ),
    acts("owner_acts::prepare", "prepare an act of a user, for the signature of an owner", &[Command]),
    acts(
        "owner_acts::sign",
        "withdraw, transfer positions, add and remove owners, raise caps, enable keys, trade above the caps",
        &[OwnerSignature],
    ),
    acts("owner_acts::choose_second_owner", "choose the owner that the first act adds", &[SteppedUp]),
    reads("owner_acts::find_second_owner", "read the owner that the first act adds", &[Session]),
    reads("owner_acts::find", "read an act", &[Session, Command]),
    reads("owner_acts::list", "list the acts", &[Session, Command]),
    reads("owner_acts::find_in_progress", "read the act in progress", &[Session, Command]),
    reads("owner_acts::find_receipt", "read the transaction of an act", &[Session, Command]),
    // Admins.
    acts("admin::prepare", "prepare an act of an admin", &[AdminSession]),
    reads("admin::find", "read an act that the person has prepared", &[Session]),
    reads("admin::preview_import", "read what an import would do", &[AdminSession]),
    acts("admin::confirm", "confirm an act of an admin", &[AdminPasskey]),
    // The operator.
    acts("people::set_role", "change the role of a user", &[AdminPasskey, Command]),
    acts("people::set_tier", "change the tier of a user", &[AdminPasskey, Command]),
    acts("people::end_sessions", "end all sessions of a user", &[AdminPasskey, Command]),
    acts("keys::pause_noted", "pause a key of a user", &[AdminPasskey, Command]),
    acts("keys::resume", "resume a key of a user", &[AdminPasskey, Command]),
    acts("keys::revoke", "revoke a key of a user", &[AdminPasskey, Command]),
    acts("kill_switches::set", "switch trading or a route off and on", &[AdminPasskey, Command]),
    acts("webhooks::set_webhook_url", "change the webhook URL of a key of a user", &[AdminPasskey, Command]),
    acts("markets::create", "create a market", &[AdminPasskey, Command]),
    acts("markets::make_move", "freeze, resolve or cancel a market", &[AdminPasskey, Command]),
    acts("catalog::add_thread", "add a thread", &[AdminPasskey, Command]),
    acts("catalog::change_thread", "change a thread", &[AdminPasskey, Command]),
    acts("catalog::change_market", "change the listing of a market", &[AdminPasskey, Command]),
    acts("keys::issue", "issue a key to a user", &[Command]),
    acts("keys::mark_agent", "mark a key of a user as an agent's", &[Command]),
    acts("delegations::queue", "lower or revoke a delegation", &[Command]),
    acts("accounts::create_user", "create a user for a wallet", &[Command]),
    acts("accounts::fund", "mint test money", &[Command]),
    acts("markets::fund", "add liquidity to a market", &[Command]),
    acts("catalog::add_organization", "add an organization", &[Command]),
    acts("catalog::change_organization", "change an organization", &[Command]),
    acts("catalog::add_partner", "add a partner", &[Command]),
    acts("catalog::change_partner", "change a partner", &[Command]),
    acts("catalog::add_chapter", "add a chapter", &[Command]),
    acts("catalog::change_chapter", "change a chapter", &[Command]),
    acts("import::run", "import markets", &[Command]),
    acts("lanes::activate", "add an executor", &[Command]),
    acts("lanes::drain", "drain an executor", &[Command]),
    acts("lanes::remove", "remove an executor", &[Command]),
    acts("lanes::fund", "fund an executor", &[Command]),
    acts("roles::make", "act in a role of the contracts", &[Command]),
    acts("webhooks::rewrap", "encrypt the webhook secrets again", &[Command]),
    acts("audit_log::record", "write to the audit log", &[Command]),
    reads("delegations::find", "read a change of a delegation", &[Command]),
    reads("delegations::find_last", "read the last change of a delegation", &[Command]),
    acts("markets::cancel", "propose the cancel of a market", &[Command]),
    reads("markets::cancel_reason", "read why a market can be cancelled", &[Command]),
    reads("markets::cancel_senders", "read who can cancel a market", &[Command]),
    reads("markets::proposal", "read the proposed result", &[Command]),
    reads("markets::is_on_chain", "read if a market is on chain", &[Command]),
    reads("catalog::place_of_market", "read where a market is listed", &[Command]),
    reads("import::plan", "plan an import", &[Command]),
    reads("import::check_funding", "check the money of an import", &[Command]),
    reads("lanes::count_open", "count the open trades of an executor", &[Command]),
    reads("lanes::find_address", "read the address of a signer", &[Command]),
    reads("audit_log::list", "read the audit log", &[Command]),
    reads("audit_log::export", "export the audit log", &[Command]),
    reads("audit_log::verify", "verify the audit log", &[Command]),
    reads("roles::senders", "read who can act in a role", &[Command]),
];
