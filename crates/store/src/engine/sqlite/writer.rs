//! The one thread that writes to the file.
//!
//! Units wait in a queue. The thread takes all that wait, up to a bound, runs each in a savepoint of its own inside
//! one transaction, commits, and only then answers: one flush of the disk serves the whole group, and nobody is told
//! of work that a crash could undo. No timer delays a unit that waits alone. A unit that is in the queue runs,
//! whatever becomes of its caller. When the commit fails, or SQLite rolls the transaction back by itself (a full
//! disk), every unit of the group is told so, refusals too, since they may rest on rows that were never kept.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::{mem, thread};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use super::super::Tx;
use super::super::changes::{Changes, Touched};
use super::super::tx::Conn;
use super::{Connection, closed, pended};
use crate::StoreError;

/// Units in one transaction at most: it bounds how long the first of them waits for the last.
const GROUP: usize = 256;

/// Units that may wait before callers are made to wait for a place.
const QUEUE: usize = 4_096;

/// The way to the writer thread.
pub(super) struct Writer {
    queue: mpsc::Sender<Message>,
}

enum Message {
    Run(Box<dyn Unit>),
    Close(oneshot::Sender<()>),
}

impl Writer {
    /// Starts the thread. It ends when the store is closed or its last handle is dropped.
    pub(super) fn start(conn: Connection, changes: Arc<Changes>) -> Result<Self, StoreError> {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let work = Work { tx: Tx::writer(Conn::Sqlite(conn)), changes };
        thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || work.run(waiting))
            .map_err(|e| StoreError::unavailable(format!("the writer thread does not start: {e}")))?;
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
        // The thread ended with the unit in its hands.
        let ended = || StoreError::commit_unknown("the writer thread has ended");
        answer.await.unwrap_or_else(|_| Err(E::from(ended())))
    }

    pub(super) fn check_open(&self) -> Result<(), StoreError> {
        if self.queue.is_closed() { Err(closed()) } else { Ok(()) }
    }

    /// Waits until all units in the queue are answered and the file is closed.
    pub(super) async fn close(&self) {
        let (done, ended) = oneshot::channel();
        if self.queue.send(Message::Close(done)).await.is_ok() {
            // An error says as well that the thread has ended.
            let _ = ended.await;
        }
    }
}

/// A unit of work in the queue, its types erased.
trait Unit: Send {
    /// Runs it. Answers whether what it wrote is to be kept.
    fn run(&mut self, tx: &mut Tx) -> bool;
    /// Tells the caller, once it is known what became of the group.
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
        // The savepoint undoes what a panic leaves half done in the database; `tx` itself holds no other state.
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
        // The caller may be gone; its work is kept all the same.
        let _ = self.reply.send(outcome);
    }
}

struct Work {
    tx: Tx,
    changes: Arc<Changes>,
}

impl Work {
    fn run(mut self, mut waiting: mpsc::Receiver<Message>) {
        let mut messages = Vec::with_capacity(GROUP);
        let mut closing = Vec::new();
        while waiting.blocking_recv_many(&mut messages, GROUP) > 0 {
            let mut units = Vec::with_capacity(messages.len());
            for message in messages.drain(..) {
                match message {
                    Message::Run(unit) => units.push(unit),
                    Message::Close(done) => {
                        // Nothing more is let in; what is already in the queue is still received.
                        waiting.close();
                        closing.push(done);
                    }
                }
            }
            while !units.is_empty() {
                units = self.group(units);
            }
        }
        // The file is closed before anyone is told so.
        drop(self);
        for done in closing {
            let _ = done.send(());
        }
    }

    /// Runs `units` in one transaction and answers them. Gives back those that were not reached because SQLite
    /// rolled the transaction back under the ones before them.
    fn group(&mut self, mut units: Vec<Box<dyn Unit>>) -> Vec<Box<dyn Unit>> {
        let mut rest = Vec::new();
        let mut touched = Touched::default();
        let group = self.conn().control("BEGIN IMMEDIATE").and_then(|()| {
            for at in 0..units.len() {
                if let Err(error) = self.one(units[at].as_mut()) {
                    rest = units.split_off(at + 1);
                    return Err(error);
                }
                touched.add(self.tx.take_touched());
            }
            self.conn().commit()
        });
        let group = group.map_err(|error| {
            if !self.conn().is_autocommit()
                && let Err(error) = self.conn().control("ROLLBACK")
            {
                tracing::error!(error = %error, "a failed group of writes could not be rolled back");
            }
            tracing::error!(error = %error, units = units.len(), "a group of writes was not kept");
            match error {
                error @ (StoreError::Unavailable(_) | StoreError::CommitUnknown(_)) => error,
                other => StoreError::unavailable(format!("the group of writes was not kept: {other}")),
            }
        });
        self.changes.tell(touched);
        for unit in mem::take(&mut units) {
            unit.answer(group.clone());
        }
        rest
    }

    /// Runs one unit in its savepoint. An error means that the whole transaction is gone.
    fn one(&mut self, unit: &mut dyn Unit) -> Result<(), StoreError> {
        self.conn().control("SAVEPOINT unit")?;
        let keep = unit.run(&mut self.tx);
        if self.conn().is_autocommit() {
            return Err(StoreError::unavailable("SQLite rolled the transaction back"));
        }
        if !keep {
            self.conn().control("ROLLBACK TO unit")?;
        }
        self.conn().control("RELEASE unit")
    }

    fn conn(&self) -> &Connection {
        match &self.tx.conn {
            Conn::Sqlite(conn) => conn,
            Conn::Postgres(_) => unreachable!("the writer thread is given a SQLite connection"),
        }
    }
}
