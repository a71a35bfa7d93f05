//! The shared table of behaviors (`clients/behaviors`) against a running service, through a proxy
//! that makes faults. `check.sh` runs it; without its variables the suite is skipped.
//!
//! The entries share the proxy, so they run one after the other. An argument selects entries whose
//! names contain it.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod calls;
mod checks;
mod feeds;
mod load;
mod releases;
mod support;

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use futures::FutureExt;
use futures::future::LocalBoxFuture;

use support::Suite;

/// A test with its name.
type Test<'a> = (String, LocalBoxFuture<'a, ()>);

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(suite) = Suite::from_environment() else {
        println!("behaviors: skipped, because FORETELL_PROXY is not set: run scripts/clients rust");
        return ExitCode::SUCCESS;
    };
    if let [program, prefix, count] = &arguments[..]
        && program == "killed-program"
    {
        load::create_and_print(&suite, prefix, count.parse().unwrap()).await;
        return ExitCode::SUCCESS;
    }
    let filter = arguments.iter().find(|argument| !argument.starts_with('-')).cloned().unwrap_or_default();
    let (mut passed, mut failed) = (0, Vec::new());
    for (name, test) in tests(&suite).into_iter().filter(|(name, _)| name.contains(&filter)) {
        if AssertUnwindSafe(test).catch_unwind().await.is_ok() {
            passed += 1;
        } else {
            eprintln!("failed: {name}\n");
            failed.push(name);
        }
    }
    println!("behaviors: {passed} passed, {} failed", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn tests(suite: &Suite) -> Vec<Test<'_>> {
    let mut tests: Vec<Test<'_>> = Vec::new();
    for entry in support::entries("calls") {
        tests.push((support::name_of(&entry), calls::check(suite, entry).boxed_local()));
    }
    for entry in support::entries("feeds") {
        tests.push((support::name_of(&entry), feeds::check(suite, entry).boxed_local()));
    }
    tests.push((
        "every trade is in the feed once and in order although the network cuts it".to_owned(),
        feeds::check_real_feed(suite).boxed_local(),
    ));
    tests.push((
        "the answers of every release are read, with new members, words and codes".to_owned(),
        releases::check(suite).boxed_local(),
    ));
    tests.push((
        "creates through a bad network make exactly one trade each".to_owned(),
        load::check(suite).boxed_local(),
    ));
    tests.push((
        "a program that is killed while it creates trades makes each once when it runs again".to_owned(),
        load::check_killed(suite).boxed_local(),
    ));
    tests
}
