//! The table of who may do what: it is complete, and the use cases do what it says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloy_primitives::Bytes;
use app::access::{Access, CallerKind, Door, USE_CASES, UseCase};
use app::admin::{AdminRequest, ImportFile, KeyStep, ServiceStep};
use app::caller::Caller;
use app::feed::FeedStart;
use app::keys;
use app::owner_acts::{self, ActOrigin, OwnerActRequest};
use app::passkeys::{Proof, WalletProof};
use app::people::{Country, KeyEnd, NewApiKey};
use app::portfolio::{self, Timeframe};
use app::redemptions::{self, NewClaim};
use app::sessions::{self, Person};
use app::trades::{self, NewTrade};
use app::{AppError, Ctx, PersonError, admin, people, webhooks};
use domain::Timestamp;
use domain::credential::Role;
use domain::ids::{AdminActId, CredentialId, EventId, KeyId, MarketId, OwnerActId, SessionId, TradeId};
use domain::key::{ChosenCaps, IpAllowlist, Scope, Scopes, Tier};
use domain::page::Page;
use domain::passkey::{Challenge, ChallengePurpose};
use domain::session::STEP_UP_MS;
use domain::trade::Draft;
use domain::usage::GraphRange;
use store::keys::Key;
use store::testing::sqlite;
use testkit::{TestApp, TestKey, device, key_of, wallet_signature};
use uuid::Uuid;

use crate::scene::Scene;

/// Public functions that nobody outside of the service calls, by the beginning of their name.
const NOT_USE_CASES: &[(&str, &str)] = &[
    ("audit_log::around", "a part of the operator's acts on chain"),
    ("ctx::", "the context"),
    ("finality::", "how deep a final block is"),
    ("health::against_database", "a check before the start of a process"),
    ("health::executors_gas", "a check before the start of a process"),
    ("keys::choose_caps", "a step of lowering caps"),
    ("keys::flush", "the worker that writes failed authentications"),
    ("keys::note_success", "a part of authentication"),
    ("kill_switches::refresh", "a worker"),
    ("lanes::refresh", "a worker"),
    ("lanes::register", "the start of a process"),
    ("lease::", "leases of workers"),
    ("ledger::", "the sync, the reconciler and their repairs"),
    ("limits::", "the rate limiter"),
    ("markets::check_question", "a step of creating a market"),
    ("nodes::", "the nodes of the chain"),
    ("parsing::", "threads that parse long texts"),
    ("passkeys::check_relying_party", "the start of a process"),
    ("passkeys::insert_credential", "a step of signing up and of adding a credential"),
    ("passkeys::use_proof", "a step of signing in"),
    ("passkeys::use_registration", "a step of signing up"),
    ("passkeys::verify_proof", "a step of signing in"),
    ("passkeys::verify_registration", "a step of signing up"),
    ("passkeys::verify_sign_in", "a step of signing in"),
    ("process::", "the memory of a process"),
    ("recovery::", "the recovery of lost data, by a worker and the operator"),
    ("redemptions::", "the workers that pay"),
    ("request_log::flush", "a worker"),
    ("usage::flush", "a worker"),
    ("webhooks::dispatch_due", "the worker that delivers events"),
    ("webhooks::dial", "connections of the sender"),
    ("webhooks::find", "lookups of the sender"),
    ("webhooks::over", "connections of the sender"),
    ("webhooks::post", "the worker that delivers events"),
    ("webhooks::read", "connections of the sender"),
    ("webhooks::send", "connections of the sender"),
    ("webhooks::settled", "connections of the sender"),
    ("webhooks::write", "a step of encrypting secrets again"),
    ("worker::", "the supervision of workers"),
];

/// Use cases that this test does not call: they need a part that only `foretell dev` has, or their
/// callers are people whose passkey or wallet proves who they are.
const NOT_CALLED: &[&str] = &["test_clock::make_move", "owner_acts::sign", "owner_acts::find_receipt"];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Returns the paths and texts of all files below a folder.
fn read_all(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(read_all(&path));
        } else if path.extension().is_some_and(|ext| ext == "rs") && !path.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            files.push((path, text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned()));
        }
    }
    files
}

/// Returns whether a text has a name as a whole word.
fn has_word(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let after = text[at + name.len()..].chars().next();
        !text[..at].ends_with(is_part) && !after.is_some_and(is_part)
    })
}

/// Returns the public asynchronous functions of `app` with their signatures. A function is public if
/// every module on its path is, or if the root of its top-level module exports it.
fn public_functions() -> BTreeMap<String, String> {
    let files = read_all(&source());
    let library = fs::read_to_string(source().join("lib.rs")).unwrap();
    let mut found = BTreeMap::new();
    for (path, text) in &files {
        let below: Vec<String> = path
            .strip_prefix(source())
            .unwrap()
            .with_extension("")
            .iter()
            .map(|part| part.to_str().unwrap().to_owned())
            .filter(|part| part != "mod")
            .collect();
        let Some(top) = below.first().filter(|top| library.contains(&format!("pub mod {top};"))) else {
            continue;
        };
        let root = files.iter().find(|(path, _)| {
            *path == source().join(format!("{top}.rs")) || *path == source().join(top).join("mod.rs")
        });
        let root = &root.unwrap().1;
        let exports = root.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next());
        let exports = exports.collect::<Vec<_>>().join("\n");
        let is_open = below.len() == 1 || root.contains(&format!("pub mod {};", below[1]));
        for (at, _) in text.match_indices("pub async fn ") {
            let rest = &text[at + "pub async fn ".len()..];
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
            // A method is as public as its type.
            let is_method = text[..at].ends_with("    ");
            let of_type = text[..at].rsplit("\nimpl").next().and_then(|rest| rest.split(" {").next());
            let exported = if is_method { of_type.unwrap_or_default().trim() } else { name };
            if is_open || has_word(&exports, exported) {
                let signature = rest.split(" {\n").next().unwrap();
                found.insert(format!("{top}::{name}"), signature.to_owned());
            }
        }
    }
    assert!(found.len() > 100, "the walk finds the use cases");
    found
}

fn is_no_use_case(name: &str) -> bool {
    USE_CASES.iter().all(|it| it.name != name)
        && NOT_USE_CASES.iter().any(|(start, _)| name.starts_with(start))
}

#[test]
fn every_public_use_case_is_in_the_table() {
    let functions = public_functions();
    let listed: BTreeSet<&str> = USE_CASES.iter().map(|it| it.name).collect();
    assert_eq!(listed.len(), USE_CASES.len(), "no use case is listed twice");
    let missing: Vec<_> =
        functions.keys().filter(|name| !listed.contains(name.as_str()) && !is_no_use_case(name)).collect();
    assert!(missing.is_empty(), "who may call these? Say so in app::access: {missing:#?}");
    let gone: Vec<_> = listed.iter().filter(|name| !functions.contains_key(**name)).collect();
    assert!(gone.is_empty(), "app::access lists functions that do not exist: {gone:#?}");
    for (start, _) in NOT_USE_CASES {
        assert!(functions.keys().any(|name| name.starts_with(start)), "nothing begins with {start}");
    }
}

/// The type that a caller must have to call a use case with these doors.
fn demanded(case: &UseCase) -> &'static [&'static str] {
    let only = |doors: &[Door]| case.doors.iter().all(|door| doors.contains(door));
    if only(&[Door::SteppedUp, Door::AdminSession, Door::AdminPasskey]) {
        &["&Person"]
    } else if only(&[Door::Session]) {
        &["&Person", "&Caller", "user_id: UserId", "&OwnerAct"]
    } else if case.doors.iter().any(|door| door.scope().is_some()) {
        &["&Caller"]
    } else {
        &[]
    }
}

#[test]
fn a_use_case_takes_the_type_that_only_its_callers_have() {
    let functions = public_functions();
    for case in USE_CASES {
        let (types, signature) = (demanded(case), &functions[case.name]);
        let fits = types.is_empty() || types.iter().any(|demanded| signature.contains(demanded));
        // A command must not be callable with what a person or a program has.
        let is_command = case.doors.iter().all(|door| matches!(door, Door::Command | Door::AdminPasskey))
            && case.doors.contains(&Door::Command);
        let is_open = is_command && (signature.contains("&Person") || signature.contains("&Caller"));
        assert!(fits && !is_open, "{}: {signature}", case.name);
    }
}

#[test]
fn no_handler_calls_what_only_the_operator_may_do() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let handlers = ["api", "web", "http-kit"].map(|name| read_all(&crates.join(name).join("src"))).concat();
    for case in USE_CASES {
        let is_of_operator = case.doors.iter().all(|door| matches!(door, Door::Command | Door::AdminPasskey));
        // Pages of admins read the log.
        if !is_of_operator || case.doors == [Door::AdminPasskey] || case.name == "audit_log::list" {
            continue;
        }
        let (module, name) = case.name.split_once("::").unwrap();
        for (path, text) in &handlers {
            let beginning = format!("use app::{module}::");
            let imported = text.split(beginning.as_str()).skip(1);
            let mut imported = imported.filter_map(|rest| rest.split(';').next());
            // `developers::keys::issue` is a handler.
            let is_named = text.match_indices(case.name).any(|(at, _)| {
                let (before, after) = (&text[..at], &text[at + case.name.len()..]);
                let is_of_app = before.ends_with("app::") || !before.ends_with("::");
                is_of_app && !after.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
            });
            let is_called = is_named || imported.any(|names| has_word(names, name));
            assert!(!is_called, "{} calls {}", path.display(), case.name);
        }
    }
}

/// Returns the code with which a use case refuses its caller. Other failures come after that: the
/// caller was let in.
fn refusal(result: Result<(), PersonError>) -> Option<&'static str> {
    match result {
        Err(PersonError::StepUpRequired) => Some("STEP_UP_REQUIRED"),
        Err(PersonError::AdminRequired) => Some("ADMIN_REQUIRED"),
        Err(PersonError::PasskeyRequired) => Some("PASSKEY_REQUIRED"),
        Err(PersonError::App(AppError { code, .. })) => {
            let code = code.as_str();
            ["INSUFFICIENT_SCOPE", "OWNER_CONFIRMATION_REQUIRED"].contains(&code).then_some(code)
        }
        _ => None,
    }
}

fn past_the_door<T, E: Into<PersonError>>(result: Result<T, E>) -> Option<Result<(), PersonError>> {
    Some(result.map(drop).map_err(Into::into))
}

/// A dry run of a trade without any field.
fn new_trade() -> NewTrade {
    NewTrade { draft: Draft::default(), idempotency_key: None, dry_run: true, correlation_id: None }
}

/// What the arguments of the calls refer to.
struct World {
    app: TestApp,
    key: TestKey,
    held: TradeId,
    market: MarketId,
}

impl World {
    /// Creates a key that has a held trade.
    async fn new() -> Self {
        let Scene { app, key, market, .. } = Scene::gated(sqlite().await).await;
        let held = key.buy(&market, 0, "100").await.id;
        Self { held, market: market.id, app, key }
    }

    fn ctx(&self) -> &Ctx {
        &self.app.ctx
    }

    fn id(&self) -> Uuid {
        self.app.ctx.uuid()
    }

    fn wallet_proof(&self, purpose: ChallengePurpose) -> WalletProof {
        let challenge = Challenge::new(purpose, self.app.ctx.random());
        WalletProof {
            challenge,
            address: alloy_primitives::Address::ZERO,
            account: None,
            signature: Bytes::from(vec![0; 65]),
        }
    }

    /// Calls a use case as a person. `None` if it does not take one.
    async fn as_person(&self, name: &str, person: &Person) -> Option<Result<(), PersonError>> {
        let (ctx, user_id, key) = (self.ctx(), person.user_id(), KeyId(self.id()));
        let caller = person.caller().unwrap();
        match name {
            "sessions::step_up" => {
                let proof = Proof::Wallet(self.wallet_proof(ChallengePurpose::StepUp));
                past_the_door(sessions::step_up(ctx, person, &proof, &device()).await)
            }
            "sessions::list" => past_the_door(sessions::list(ctx, person).await),
            "sessions::sign_out" => past_the_door(sessions::sign_out(ctx, person).await),
            "sessions::end" => past_the_door(sessions::end(ctx, person, SessionId(self.id())).await),
            "sessions::end_others" => past_the_door(sessions::end_others(ctx, person).await),
            "people::list_credentials" => past_the_door(people::list_credentials(ctx, person).await),
            "people::add_credential" => {
                let new = self.wallet_proof(ChallengePurpose::AddKey);
                let new = app::passkeys::NewCredential::Wallet(new);
                past_the_door(people::add_credential(ctx, person, &new, None).await)
            }
            "people::remove_credential" => {
                past_the_door(people::remove_credential(ctx, person, CredentialId(self.id())).await)
            }
            "people::rename_credential" => {
                past_the_door(people::rename_credential(ctx, person, CredentialId(self.id()), "a").await)
            }
            "people::rename" => past_the_door(people::rename(ctx, person, "ada").await),
            "people::find_public_name" => past_the_door(people::find_public_name(ctx, person).await),
            "people::set_public_name" => past_the_door(people::set_public_name(ctx, person, "").await),
            "people::pause_trading" => past_the_door(people::pause_trading(ctx, person).await),
            "people::resume_trading" => past_the_door(people::resume_trading(ctx, person).await),
            "people::issue_api_key" => {
                let wanted = NewApiKey {
                    name: "bot".to_owned(),
                    scopes: Scopes::all(),
                    expires_at: None,
                    ip_allowlist: IpAllowlist::default(),
                    webhook_url: None,
                    is_agent: false,
                };
                past_the_door(people::issue_api_key(ctx, person, self.id(), wanted).await)
            }
            "people::set_api_key_access" => {
                let access = (IpAllowlist::default(), KeyEnd::Kept);
                past_the_door(people::set_api_key_access(ctx, person, key, access).await)
            }
            "people::lower_api_key_caps" => {
                past_the_door(people::lower_api_key_caps(ctx, person, key, ChosenCaps::default()).await)
            }
            "people::pause_api_key" => past_the_door(people::pause_api_key(ctx, person, key).await),
            "people::resume_api_key" => past_the_door(people::resume_api_key(ctx, person, key).await),
            "people::revoke_api_key" => past_the_door(people::revoke_api_key(ctx, person, key).await),
            "people::mark_api_key_as_agent" => {
                past_the_door(people::mark_api_key_as_agent(ctx, person, key).await)
            }
            "people::set_api_key_webhook" => {
                past_the_door(people::set_api_key_webhook(ctx, person, key, None).await)
            }
            "people::rotate_api_key_secret" => {
                past_the_door(people::rotate_api_key_secret(ctx, person, key).await)
            }
            "people::send_api_key_test" => past_the_door(people::send_api_key_test(ctx, person, key).await),
            "people::redeliver_event" => {
                past_the_door(people::redeliver_event(ctx, person, EventId(self.id())).await)
            }
            "people::create_trade" => {
                past_the_door(people::create_trade(ctx, person, Country::default(), new_trade()).await)
            }
            "people::confirm_trade" => past_the_door(
                people::confirm_trade(ctx, person, Country::default(), TradeId(self.id())).await,
            ),
            "redemptions::claim_own" => {
                past_the_door(redemptions::claim_own(ctx, person, Some((self.market, 0))).await)
            }
            "redemptions::list_claiming" => past_the_door(redemptions::list_claiming(ctx, person).await),
            "faucet::give" => past_the_door(app::faucet::give(ctx, user_id).await),
            "accounts::account_of" => past_the_door(app::accounts::account_of(ctx, user_id).await),
            "accounts::owners" => past_the_door(app::accounts::owners(ctx, user_id).await),
            "people::count_other_owners" => past_the_door(people::count_other_owners(ctx, person, &[]).await),
            "accounts::stored_owners" => past_the_door(app::accounts::stored_owners(ctx, user_id).await),
            "portfolio::of_person" => past_the_door(portfolio::of_person(ctx, person).await),
            "portfolio::read_over_time" => {
                past_the_door(portfolio::read_over_time(ctx, person, Timeframe::OneDay).await)
            }
            "portfolio::list_deposits" => {
                let page = Page { limit: 1, after: None };
                past_the_door(portfolio::list_deposits(ctx, user_id, &page).await)
            }
            "portfolio::export_trades" => {
                let period = (Timestamp::from_ms(0), ctx.now());
                past_the_door(portfolio::export_trades(ctx, person, period, 1).await)
            }
            "for_you::list_for_you" => past_the_door(app::for_you::list_for_you(ctx, user_id).await),
            "usage::of_key" => past_the_door(app::usage::of_key(ctx, &caller).await),
            "usage::history" => past_the_door(app::usage::history(ctx, user_id, GraphRange::Day).await),
            "request_log::search" => past_the_door(app::request_log::search(ctx, user_id, "a").await),
            "user_log::list" => past_the_door(app::user_log::list(ctx, user_id, None, 1).await),
            "keys::list_own" => past_the_door(keys::list_own(ctx, user_id).await),
            "keys::find_own" => past_the_door(keys::find_own(ctx, user_id, key).await),
            "webhooks::endpoint" => past_the_door(webhooks::endpoint(ctx, &caller).await),
            "people::prepare_act" => {
                let request = OwnerActRequest::EndApproval;
                past_the_door(people::prepare_act(ctx, person, Country::default(), &request).await)
            }
            "owner_acts::choose_second_owner" => {
                past_the_door(owner_acts::choose_second_owner(ctx, person, None).await)
            }
            "owner_acts::find_second_owner" => {
                past_the_door(owner_acts::find_second_owner(ctx, user_id).await)
            }
            "owner_acts::find" => past_the_door(owner_acts::find(ctx, user_id, OwnerActId(self.id())).await),
            "owner_acts::list" => past_the_door(owner_acts::list(ctx, user_id, None, 1).await),
            "owner_acts::find_in_progress" => past_the_door(owner_acts::find_in_progress(ctx, user_id).await),
            "admin::prepare" => {
                let request = AdminRequest::Key(KeyStep::Pause { key });
                past_the_door(admin::prepare(ctx, person, &request).await)
            }
            "admin::find" => past_the_door(admin::find(ctx, person, AdminActId(self.id())).await),
            "admin::preview_import" => {
                let file = ImportFile { text: String::new(), is_json: false };
                past_the_door(admin::preview_import(ctx, person, &file).await)
            }
            "admin::confirm" => {
                let (name, reason) = ("trading".to_owned(), "drill".to_owned());
                let request = AdminRequest::Service(ServiceStep::Switch { name, is_off: true, reason });
                let prepared = admin::prepare(ctx, person, &request).await;
                let id = prepared.map_or(AdminActId(self.id()), |act| act.id);
                let proof = Proof::Wallet(self.wallet_proof(ChallengePurpose::Admin));
                past_the_door(admin::confirm(ctx, person, id, &proof, device().ip).await)
            }
            _ => None,
        }
    }

    /// Calls a use case as a program. `None` if it does not take an API key.
    async fn as_program(&self, name: &str, caller: &Caller) -> Option<Result<(), PersonError>> {
        let ctx = self.ctx();
        match name {
            "trades::create" => past_the_door(trades::create(ctx, caller, new_trade()).await),
            "trades::confirm" => {
                past_the_door(trades::confirm(ctx, caller, &self.held.to_string(), "ct_x").await)
            }
            "redemptions::claim" => {
                let new =
                    NewClaim { market_id: self.market.to_string(), outcome_index: 0, correlation_id: None };
                past_the_door(redemptions::claim(ctx, caller, new).await)
            }
            "keys::pause" => past_the_door(keys::pause(ctx, caller).await),
            "keys::check_again" => past_the_door(keys::check_again(ctx, caller, device().ip).await),
            "portfolio::summary" => past_the_door(portfolio::summary(ctx, caller).await),
            "portfolio::positions" => past_the_door(portfolio::positions(ctx, caller, None).await),
            "readiness::of_key" => past_the_door(app::readiness::of_key(ctx, caller).await),
            "feed::read" => {
                past_the_door(app::feed::read(ctx, caller.user_id(), FeedStart::Latest, &[], 1).await)
            }
            "usage::of_key" => past_the_door(app::usage::of_key(ctx, caller).await),
            "usage::spend" => past_the_door(app::usage::spend(ctx, caller).await),
            "webhooks::endpoint" => past_the_door(webhooks::endpoint(ctx, caller).await),
            "webhooks::rotate_secret" => past_the_door(webhooks::rotate_secret(ctx, caller).await),
            "webhooks::send_test" => past_the_door(webhooks::send_test(ctx, caller).await),
            "webhooks::redeliver" => {
                past_the_door(webhooks::redeliver(ctx, caller, EventId(self.id())).await)
            }
            _ => None,
        }
    }
}

/// Compares what the use cases do with the table, and returns the number of calls.
async fn compare<'a, T>(
    kind: CallerKind,
    caller: &'a T,
    call: impl AsyncFn(&'static str, &'a T) -> Option<Result<(), PersonError>>,
) -> u32 {
    let mut calls = 0;
    for case in USE_CASES.iter().filter(|case| !NOT_CALLED.contains(&case.name)) {
        // Only `admin::confirm` leads an admin there.
        if [Door::AdminPasskey, Door::Command].iter().all(|door| case.doors.contains(door)) {
            continue;
        }
        let expected = match case.access(kind) {
            // Either a type keeps the caller out, or it is somebody else's door that anybody passes.
            Access::Unreachable => continue,
            Access::Allowed if case.doors.contains(&Door::Anyone) => continue,
            Access::Allowed => None,
            Access::Refused(code) => Some(code),
        };
        let Some(result) = call(case.name, caller).await else {
            // Only the session of an owner reaches it, or a program's key.
            panic!("call {} as {} in this test", case.name, kind.name());
        };
        assert_eq!(refusal(result), expected, "{} as {}", case.name, kind.name());
        calls += 1;
    }
    calls
}

#[tokio::test]
async fn people_can_do_what_the_table_says() {
    let world = World::new().await;
    let app = &world.app;
    let (mut passkey, stale) = app.sign_up().await;
    app.clock.advance(STEP_UP_MS);
    let (mut admins, admin) = app.sign_up().await;
    people::set_role(&app.ctx, admin.user_id(), Role::Admin).await.unwrap();
    let signed_in = app.try_sign_in(&mut admins).await.unwrap();
    app.clock.advance(STEP_UP_MS);
    let admin = app.person(&signed_in).await;
    let stepped_up = app.person(&app.try_sign_in(&mut passkey).await.unwrap()).await;
    for (kind, person) in [
        (CallerKind::Session, &stale),
        (CallerKind::SteppedUp, &stepped_up),
        (CallerKind::AdminSession, &admin),
    ] {
        let calls = compare(kind, person, async |name, person| world.as_person(name, person).await).await;
        assert!(calls > 50, "{calls} as {}", kind.name());
    }
}

#[tokio::test]
async fn keys_can_do_what_the_table_says() {
    let world = World::new().await;
    let plain = world.key.caller.key.as_ref().clone();
    let with = |key: Key| Caller::new(Arc::new(key), device().ip);
    let program = with(Key { scopes: Scopes::all(), ..plain.clone() });
    let marked = with(Key { scopes: Scopes::all(), is_agent: true, ..plain.clone() });
    let by_tools = program.clone().through_agent_tools();
    for (kind, caller) in
        [(CallerKind::ApiKey, &program), (CallerKind::Agent, &marked), (CallerKind::Agent, &by_tools)]
    {
        // The loop before has paused it.
        keys::resume(world.ctx(), plain.id).await.unwrap();
        let calls = compare(kind, caller, async |name, caller| world.as_program(name, caller).await).await;
        assert!(calls > 10, "{calls} as {}", kind.name());
    }
    // Each scope opens its doors, and no other scope does.
    for case in USE_CASES {
        let Some(scope) = case.doors.iter().find_map(|door| door.scope()) else { continue };
        let others: Vec<Scope> = Scope::ALL.iter().copied().filter(|other| *other != scope).collect();
        for (scopes, expected) in
            [(Scopes::of(&[scope]), None), (Scopes::of(&others), Some("INSUFFICIENT_SCOPE"))]
        {
            let caller = with(Key { scopes, ..plain.clone() });
            let result = world.as_program(case.name, &caller).await.unwrap();
            assert_eq!(refusal(result), expected, "{} with {scopes}", case.name);
        }
    }
}

#[tokio::test]
async fn only_an_owners_signature_makes_an_act() {
    let Scene { app, ada, .. } = Scene::new().await;
    let bob = app.user("bob").await;
    let key = app.issue(key_of(&ada, Tier::Mm)).await.unwrap().caller.key.id;
    let act = app.prepare_act(&ada, &OwnerActRequest::Enable { keys: vec![key] }).await.act;
    let case = UseCase::find("owner_acts::sign").unwrap();
    let sign = async |signature| {
        owner_acts::sign(&app.ctx, ada.id, act.id, &signature, ActOrigin::User(device().ip)).await
    };
    let refused = sign(wallet_signature(&bob.owner, &act)).await.unwrap_err();
    for kind in [CallerKind::Session, CallerKind::SteppedUp] {
        assert_eq!(case.access(kind), Access::Refused(refused.code.as_str()));
    }
    sign(wallet_signature(&ada.owner, &act)).await.unwrap();
    assert_eq!(case.access(CallerKind::Owner), Access::Allowed);
}
