//! Refuses titles and questions that people can take for others, in the file or in the database.

use std::collections::{BTreeMap, HashSet};

use domain::ids::ThreadId;
use domain::market::MarketStatus;
use domain::text::shown;
use uuid::Uuid;

use super::super::plan::{ImportAction, ImportRow};
use super::super::{ImportKind, ImportProblem};
use super::Planner;
use crate::catalog::names::{Clash, clashes, is_open, is_renamed};

/// A title or question as it will be after the run.
struct Written {
    /// The path of the item.
    at: String,
    name: String,
    /// Whether it is new, renamed or moved. Others keep a name that an older version allowed.
    is_new: bool,
}

/// The owner of a name.
#[derive(Clone, Copy)]
enum Owner {
    /// The index of an item that the run writes.
    Item(usize),
    /// The id of a row that the run does not write.
    Row(Uuid),
}

impl Planner<'_> {
    /// Checks the titles of threads and, in each thread, the questions of markets. Called after all
    /// steps are planned.
    pub(super) fn check_names(&mut self) {
        let mut titles = Vec::new();
        let mut questions: BTreeMap<ThreadId, Vec<Written>> = BTreeMap::new();
        let mut written = HashSet::new();
        // A skipped item stays as it is stored.
        for step in self.steps.iter().filter(|step| step.action != ImportAction::Skip) {
            let at = || self.seen.get(&(step.kind, step.key())).cloned().unwrap_or_default();
            match &step.row {
                ImportRow::Thread(new) => {
                    written.insert(new.id.0);
                    let old = self.known.threads.get(step.key());
                    let is_new = old.is_none_or(|old| is_renamed(old, new, self.now));
                    if is_open(new, self.now) {
                        titles.push(Written { at: at(), name: new.title.clone(), is_new });
                    }
                }
                ImportRow::Market(new) => {
                    written.extend(new.id.map(|id| id.0));
                    let old = self.known.markets.get(step.key()).map(|(market, _)| market);
                    let is_new = old.is_none_or(|old| old.thread_id != new.thread_id);
                    let is_cancelled = old.is_some_and(|old| old.status == MarketStatus::Cancelled);
                    if let Some(thread_id) = new.thread_id.filter(|_| !is_cancelled) {
                        let name = new.question.clone();
                        questions.entry(thread_id).or_default().push(Written { at: at(), name, is_new });
                    }
                }
                ImportRow::Organization(_) | ImportRow::Partner(_) | ImportRow::Chapter(_) => {}
            }
        }
        let stored = self.known.titles.iter().map(|(id, title)| (id.0, title.as_str()));
        let mut problems = alike(ImportKind::Thread, &titles, stored.filter(|(id, _)| !written.contains(id)));
        for (thread_id, questions) in &questions {
            let stored = self.known.questions.get(thread_id).into_iter().flatten();
            let stored = stored.map(|(id, question)| (id.0, question.as_str()));
            problems.extend(alike(
                ImportKind::Market,
                questions,
                stored.filter(|(id, _)| !written.contains(id)),
            ));
        }
        self.problems.extend(problems);
    }
}

fn alike<'n>(
    kind: ImportKind,
    written: &'n [Written],
    stored: impl Iterator<Item = (Uuid, &'n str)>,
) -> Vec<ImportProblem> {
    let (member, place) = match kind {
        ImportKind::Market => ("question", " in the same thread"),
        _ => ("title", ""),
    };
    let items = |is_new: bool| {
        let items = written.iter().enumerate().filter(move |(_, item)| item.is_new == is_new);
        items.map(|(index, item)| (Owner::Item(index), item.name.as_str()))
    };
    let stored = stored.map(|(id, name)| (Owner::Row(id), name));
    let path = |owner: Owner| match owner {
        Owner::Item(index) => written.get(index).map_or("", |item| item.at.as_str()),
        Owner::Row(_) => "",
    };
    let problem = |clash: Clash<'_, Owner>| {
        let other = match clash.other {
            Owner::Item(_) => format!("the {member} of {}{place}", path(clash.other)),
            Owner::Row(id) => format!("the {member} of the {kind} {id}{place}"),
        };
        let detail = format!("{}, got {}", clash.requirement(&other), shown(clash.name));
        ImportProblem::new(format!("{}/{member}", path(clash.owner)), detail)
    };
    clashes(items(true), items(false).chain(stored)).into_iter().map(problem).collect()
}
