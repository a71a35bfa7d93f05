//! The catalog: organizations, partners, threads and chapters, under which markets are listed.
//!
//! A row is changed in one transaction: `lock_*` locks and returns it, `put_*` updates it. Changes
//! of threads and markets also change sums, so their `lock_*` calls `traders::lock` first. Lists
//! are sorted by id, newest first, because ids grow with time.

pub(crate) mod chapter;
mod listing;
mod organization;
pub(crate) mod partner;
mod thread;

pub use chapter::{
    Chapter, find_chapter, insert_chapter, list_chapters, lock_chapter, next_position, put_chapter,
};
pub use listing::{Listing, lock_listing, misfiled, put_listing, questions_in};
pub use organization::{
    Organization, find_organization, insert_organization, list_organizations, lock_organization,
    organization_with_slug, put_organization,
};
pub use partner::{
    Partner, find_partner, insert_partner, list_partners, lock_partner, partner_with_slug, put_partner,
};
pub use thread::{
    Thread, find_thread, hold_thread, insert_thread, list_threads, lock_thread, open_titles, put_thread,
    put_words,
};
