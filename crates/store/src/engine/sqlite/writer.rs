//! The thread that writes to the database file.
//!
//! Units wait in a queue. The thread runs all waiting units, up to a limit, as a group in one
//! transaction. Units that arrive meanwhile join the group. The callers are answered only after the
//! commit. One disk flush thus serves the whole group, and no caller gets a success that a crash
//! could undo. No timer delays a unit that waits alone. A queued unit runs even if its caller is
//! dropped.
//!
//! If a unit fails, the transaction is rolled back, and the whole group runs again, with a savepoint
//! for each unit. So do the next groups, with only one run. Other groups have no savepoints, because
//! SQLite would copy each page that a unit changes.
//!
//! If the commit fails, or SQLite rolls back by itself (for example on a full disk), every unit of
//! the group fails. That includes units that returned an error of their own, since they may have
//! read rows that were rolled back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::{mem, thread};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use super::super::Tx;
use super::super::changes::{Changes, Touched};
use super::super::tx::Conn;
use super::{SqliteConnection, closed, pended};
use crate::StoreError;

/// The maximum number of units in one transaction. Bounds the time that the first of them waits for
/// the last.
const GROUP: usize = 256;

/// The number of groups that have savepoints after a unit has failed. Without them, a client whose
/// requests all fail would make most groups run twice.
const GROUPS_WITH_SAVEPOINTS: usize = 16;

/// The maximum number of waiting units. Further callers wait for a free place.
const QUEUE: usize = 4_096;

/// A handle to the writer thread.
pub(super) struct Writer {
    queue: mpsc::Sender<Message>,
}

enum Message {
    Run(Box<dyn Unit>),
    Close(oneshot::Sender<()>),
}

impl Writer {
    /// Starts the thread. It ends when the store is closed or its last handle is dropped.
    pub(super) fn start(conn: SqliteConnection, changes: Arc<Changes>) -> Result<Self, StoreError> {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let work = Work {
            tx: Tx::writer(Conn::Sqlite(conn)),
            changes,
            waiting,
            closing: Vec::new(),
            groups_with_savepoints: 0,
        };
        thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || work.run())
            .map_err(|e| StoreError::unavailable(format!("could not start the writer thread: {e}")))?;
        Ok(Self { queue })
    }

    pub(super) async fn run<I, T, E, F>(&self, input: I, unit: F) -> Result<T, E>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>> + Send + Sync + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let unit = Box::new(Queued { input, unit, outcome: None, reply });
        self.queue.send(Message::Run(unit)).await.map_err(|_| closed())?;
        // The thread ended while it held the unit.
        let ended = || StoreError::commit_unknown("the writer thread has ended");
        answer.await.unwrap_or_else(|_| Err(E::from(ended())))
    }

    pub(super) fn check_open(&self) -> Result<(), StoreError> {
        if self.queue.is_closed() { Err(closed()) } else { Ok(()) }
    }

    /// Waits until all queued units are answered and the file is closed.
    pub(super) async fn close(&self) {
        let (done, ended) = oneshot::channel();
        if self.queue.send(Message::Close(done)).await.is_ok() {
            // An error also means that the thread has ended.
            let _ = ended.await;
        }
    }
}

/// A queued unit of work, with its types erased.
trait Unit: Send {
    /// Runs the unit. Returns whether its changes are to be committed.
    fn run(&mut self, tx: &mut Tx) -> bool;
    /// Answers the caller, after the result of the group's transaction is known.
    fn answer(self: Box<Self>, group: Result<(), StoreError>);
}

struct Queued<I, T, E, F> {
    input: I,
    unit: F,
    outcome: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<I, T, E, F> Unit for Queued<I, T, E, F>
where
    I: Send + Sync,
    T: Send,
    E: From<StoreError> + Send,
    F: for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>> + Send + Sync,
{
    fn run(&mut self, tx: &mut Tx) -> bool {
        tx.reset();
        // The rollback undoes whatever a panic leaves unfinished in the database. `tx` has no other
        // state.
        let outcome = catch_unwind(AssertUnwindSafe(|| tx.run(&self.input, &self.unit).now_or_never()));
        let outcome = match outcome {
            Ok(Some(outcome)) => outcome,
            Ok(None) => Err(E::from(pended())),
            Err(_) => Err(E::from(StoreError::driver("the unit of work panicked"))),
        };
        self.outcome.insert(outcome).is_ok()
    }

    fn answer(self: Box<Self>, group: Result<(), StoreError>) {
        let outcome = match group {
            Ok(()) => {
                self.outcome.unwrap_or_else(|| Err(E::from(StoreError::driver("the unit was not run"))))
            }
            Err(error) => Err(E::from(error)),
        };
        // The caller may be gone. Its work is committed nevertheless.
        let _ = self.reply.send(outcome);
    }
}

struct Work {
    tx: Tx,
    changes: Arc<Changes>,
    waiting: mpsc::Receiver<Message>,
    closing: Vec<oneshot::Sender<()>>,
    /// The number of groups that still get savepoints.
    groups_with_savepoints: usize,
}

impl Work {
    fn run(mut self) {
        while let Some(message) = self.waiting.blocking_recv() {
            let mut units = Vec::new();
            self.accept(message, &mut units);
            while !units.is_empty() {
                units = self.group(units);
            }
        }
        // Close the file before reporting that it is closed.
        let closing = mem::take(&mut self.closing);
        drop(self);
        for done in closing {
            let _ = done.send(());
        }
    }

    /// Returns whether the group has a unit at this place. After its last unit, the waiting ones join it.
    fn has_next(&mut self, at: usize, units: &mut Vec<Box<dyn Unit>>) -> bool {
        if at == units.len() {
            while units.len() < GROUP
                && let Ok(message) = self.waiting.try_recv()
            {
                self.accept(message, units);
            }
        }
        at < units.len()
    }

    fn accept(&mut self, message: Message, units: &mut Vec<Box<dyn Unit>>) {
        match message {
            Message::Run(unit) => units.push(unit),
            Message::Close(done) => {
                // No new messages are accepted, but queued ones are still received.
                self.waiting.close();
                self.closing.push(done);
            }
        }
    }

    /// Runs `units` in one transaction and answers them. Returns the units that did not run because
    /// SQLite rolled back the transaction after an earlier one.
    fn group(&mut self, mut units: Vec<Box<dyn Unit>>) -> Vec<Box<dyn Unit>> {
        let mut rest = Vec::new();
        let mut touched = Touched::default();
        let group = self.conn().control("BEGIN IMMEDIATE").and_then(|()| {
            if self.groups_with_savepoints == 0 {
                if self.run_all(&mut units, &mut touched) {
                    return self.conn().commit();
                }
                touched = Touched::default();
                if !self.conn().is_autocommit() {
                    self.conn().control("ROLLBACK")?;
                    if units.len() == 1 {
                        return Ok(());
                    }
                }
                self.groups_with_savepoints = GROUPS_WITH_SAVEPOINTS;
                self.conn().control("BEGIN IMMEDIATE")?;
            }
            self.groups_with_savepoints -= 1;
            let mut at = 0;
            while self.has_next(at, &mut units) {
                if let Err(error) = self.run_one(units[at].as_mut()) {
                    rest = units.split_off(at + 1);
                    return Err(error);
                }
                touched.add(self.tx.take_touched());
                at += 1;
            }
            self.conn().commit()
        });
        let group = group.map_err(|error| {
            if !self.conn().is_autocommit()
                && let Err(error) = self.conn().control("ROLLBACK")
            {
                tracing::error!(error = %error, "could not roll back a failed group of writes");
            }
            tracing::error!(error = %error, units = units.len(), "could not commit a group of writes");
            match error {
                error @ (StoreError::Unavailable(_) | StoreError::CommitUnknown(_)) => error,
                other => StoreError::unavailable(format!("the group of writes was not committed: {other}")),
            }
        });
        if group.is_err() {
            touched.trades.clear();
        }
        // Also after a failure: a commit with an unknown result may have taken effect.
        self.changes.tell(touched);
        for unit in mem::take(&mut units) {
            unit.answer(group.clone());
        }
        rest
    }

    /// Runs the units without savepoints, until one of them fails. Returns whether none has failed.
    fn run_all(&mut self, units: &mut Vec<Box<dyn Unit>>, touched: &mut Touched) -> bool {
        let mut at = 0;
        while self.has_next(at, units) {
            let keep = units[at].run(&mut self.tx);
            touched.add(self.tx.take_touched());
            if !keep || self.conn().is_autocommit() {
                return false;
            }
            at += 1;
        }
        true
    }

    /// Runs one unit in its savepoint. An error means that the whole transaction was rolled back.
    fn run_one(&mut self, unit: &mut dyn Unit) -> Result<(), StoreError> {
        self.conn().control("SAVEPOINT unit")?;
        let keep = unit.run(&mut self.tx);
        if self.conn().is_autocommit() {
            return Err(StoreError::unavailable("SQLite rolled the transaction back"));
        }
        if !keep {
            self.conn().control("ROLLBACK TO unit")?;
            drop(self.tx.take_touched());
        }
        self.conn().control("RELEASE unit")
    }

    fn conn(&self) -> &SqliteConnection {
        match &self.tx.conn {
            Conn::Sqlite(conn) => conn,
            Conn::Postgres(_) => unreachable!("the writer thread is given a SQLite connection"),
        }
    }
}
