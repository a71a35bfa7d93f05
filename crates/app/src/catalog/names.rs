//! Titles of open threads, and questions within a thread: people must be able to tell them apart.
//!
//! They are compared in the same way as the outcomes of a market. A title or question is only
//! checked when it is new, renamed or moved, so two that an older version allowed keep working.
//!
//! The check reads what the transaction has written, under a lock that makes such transactions wait
//! for each other: `traders::lock` for titles, and the thread's row for questions.

use domain::Timestamp;
use domain::ids::{MarketId, ThreadId};
use domain::text::{Likeness, NameIndex};
use store::Tx;
use store::catalog::{self, Thread};

use crate::AppError;

/// A new name that people can take for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clash<'n, T> {
    pub owner: T,
    pub name: &'n str,
    pub likeness: Likeness,
    /// The owner of the other name.
    pub other: T,
}

impl<T> Clash<'_, T> {
    /// The requirement that the name does not meet. `other` names the other one.
    pub fn requirement(&self, other: &str) -> String {
        match self.likeness {
            Likeness::Same => format!("must differ from {other} in more than blanks, case and encoding"),
            Likeness::Lookalike => {
                format!("must not look like {other}: one of them has letters of another alphabet")
            }
        }
    }
}

/// Returns the new names that people can take for an earlier new name, or for one of the others.
pub(crate) fn clashes<'n, T: Copy>(
    new: impl IntoIterator<Item = (T, &'n str)>,
    others: impl IntoIterator<Item = (T, &'n str)>,
) -> Vec<Clash<'n, T>> {
    let mut found = Vec::new();
    // The index has only the new names, which are few beside those of the database.
    let mut index = NameIndex::default();
    for (owner, name) in new {
        if let Some((likeness, &(other, _))) = index.find(name) {
            found.push(Clash { owner, name, likeness, other });
        }
        index.insert(name, (owner, name));
    }
    for (other, name_of_other) in others {
        if let Some((likeness, &(owner, name))) = index.find(name_of_other) {
            found.push(Clash { owner, name, likeness, other });
        }
    }
    found
}

/// Returns whether a thread is open, which it is until its end.
pub(crate) fn is_open(thread: &Thread, now: Timestamp) -> bool {
    thread.end_time.is_none_or(|end| end > now)
}

/// Returns whether a change of a thread requires a check of its title.
pub(crate) fn is_renamed(old: &Thread, new: &Thread, now: Timestamp) -> bool {
    old.title != new.title || (!is_open(old, now) && is_open(new, now))
}

/// Checks the titles of threads that this transaction has written. It must hold `traders::lock`.
pub(crate) async fn check_titles(tx: &mut Tx, written: &[ThreadId], now: Timestamp) -> Result<(), AppError> {
    if written.is_empty() {
        return Ok(());
    }
    let open = catalog::open_titles(tx, now).await?;
    refuse("/title", written, &open, |id| format!("the title of the thread {id}"))
}

/// Checks the question of a market that this transaction has written into the thread `to`, unless
/// it was there before. The transaction must hold the thread's row.
pub(crate) async fn check_moved(
    tx: &mut Tx,
    id: MarketId,
    from: Option<ThreadId>,
    to: Option<ThreadId>,
) -> Result<(), AppError> {
    let Some(thread_id) = to.filter(|_| to != from) else { return Ok(()) };
    let questions = catalog::questions_in(tx, thread_id).await?;
    refuse("/question", &[id], &questions, question_of)
}

/// Checks the question of a new market beside those of its thread, which may include its own.
pub(crate) fn check_question(
    question: &str,
    id: Option<MarketId>,
    of_thread: &[(MarketId, String)],
) -> Result<(), AppError> {
    let id = id.unwrap_or(MarketId(uuid::Uuid::nil()));
    let mut questions = of_thread.to_vec();
    questions.retain(|(other, _)| *other != id);
    questions.push((id, question.to_owned()));
    refuse("/question", &[id], &questions, question_of)
}

fn question_of(id: MarketId) -> String {
    format!("the question of the market {id} in the same thread")
}

/// Returns an error if people can take one of the written names for another one.
fn refuse<T: Copy + Eq>(
    pointer: &str,
    written: &[T],
    names: &[(T, String)],
    other: impl Fn(T) -> String,
) -> Result<(), AppError> {
    let (new, others): (Vec<_>, Vec<_>) =
        names.iter().map(|(id, name)| (*id, name.as_str())).partition(|(id, _)| written.contains(id));
    match clashes(new, others).first() {
        Some(clash) => {
            Err(AppError::wrong_value(pointer, &clash.requirement(&other(clash.other)), clash.name))
        }
        None => Ok(()),
    }
}
