//! Tests of the site's pages in Chromium, against the real binary as a process.
//!
//! They run only if `FORETELL_CHROMEDRIVER` contains the path of chromedriver, and also need the
//! packages of `tools/reference` (`npm ci`). Otherwise they pass without running.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod admin;
mod budgets;
mod chromium;
mod developer;
mod driver;
mod faults;
mod keyboard;
mod kills;
mod live;
mod lost_owner;
mod pages;
mod person;
mod sample_user;
mod scripts_off;
#[expect(dead_code, reason = "these tests need few of the faults that the tests of processes plant")]
#[path = "../processes/service.rs"]
mod service;
mod site;
mod states;
mod tabs;
mod theme;
mod walk;
mod wallet;
mod weak_keys;
