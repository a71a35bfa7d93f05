//! What markets are arranged under: organizations, partners, threads and chapters.
//!
//! A row is changed in one transaction: `lock_*` takes it and tells what it holds, `put_*` writes it back. Those of threads
//! and markets, whose change moves sums, take `traders::lock` before it. Lists are walked by id, newest first: ids grow with
//! time.

pub(crate) mod chapter;
mod listing;
mod organization;
pub(crate) mod partner;
mod thread;

pub use chapter::{
    Chapter, find_chapter, insert_chapter, list_chapters, lock_chapter, next_position, put_chapter,
};
pub use listing::{Listing, lock_listing, misfiled, put_listing};
pub use organization::{
    Organization, find_organization, insert_organization, list_organizations, lock_organization,
    organization_with_slug, put_organization,
};
pub use partner::{
    Partner, find_partner, insert_partner, list_partners, lock_partner, partner_with_slug, put_partner,
};
pub use thread::{
    Thread, find_thread, hold_thread, insert_thread, list_threads, lock_thread, put_thread, put_words,
};
