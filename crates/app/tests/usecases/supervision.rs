//! Workers that panic, fail or hang.

use std::sync::Arc;
use std::time::Duration;

use app::process::worker_registry::WorkerStatus;
use app::test_clock::ClockMove;
use app::worker::{Progress, Worker, supervise};
use app::{AppError, Ctx};
use async_trait::async_trait;
use domain::ErrorCode;
use parking_lot::Mutex;
use testkit::TestApp;
use tokio::sync::watch;
use tokio::time::Instant;

/// The behavior of a test worker in each tick.
#[derive(Debug, Clone, Copy)]
enum Tick {
    Panics,
    Fails,
    Hangs,
    Works,
}

struct Planted {
    tick: Tick,
    began: Arc<Mutex<Vec<Instant>>>,
}

#[async_trait]
impl Worker for Planted {
    fn name(&self) -> &'static str {
        "planted"
    }

    async fn tick(&self, _: &Ctx) -> Result<Progress, AppError> {
        self.began.lock().push(Instant::now());
        match self.tick {
            Tick::Panics => panic!("a planted panic"),
            Tick::Fails => Err(AppError::new(ErrorCode::DependencyUnavailable)),
            Tick::Hangs => std::future::pending().await,
            Tick::Works => Ok(Progress::Idle),
        }
    }
}

/// Supervises a worker for this many seconds. Returns the times between its ticks in milliseconds
/// (rounded to 10 ms), and its final status.
async fn gaps(tick: Tick, seconds: u64) -> (TestApp, Vec<u128>, WorkerStatus) {
    let app = TestApp::new().await;
    tokio::time::pause();
    let began = Arc::<Mutex<Vec<Instant>>>::default();
    let (stop, stopped) = watch::channel(false);
    let make = {
        let began = Arc::clone(&began);
        move || Planted { tick, began: Arc::clone(&began) }
    };
    let runs = supervise(make, app.ctx.clone(), Duration::from_secs(10), stopped);
    let ended = tokio::time::timeout(Duration::from_secs(seconds), runs).await;
    assert!(ended.is_err(), "a worker runs until it is stopped");
    drop(stop);
    tokio::time::resume();
    let began = began.lock().clone();
    let gaps = began.windows(2).map(|pair| {
        let gap = (pair[1] - pair[0]).as_millis();
        (gap + 5) / 10 * 10
    });
    let status = app.ctx.process.workers.list().remove(0).1;
    (app, gaps.collect(), status)
}

#[tokio::test]
async fn a_panicking_worker_restarts_with_delays_of_1_to_30_seconds() {
    let (app, gaps, status) = gaps(Tick::Panics, 100).await;
    assert_eq!(gaps, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    assert_eq!((status.panics, status.is_down), (8, true));
    let degraded = app::health::readiness(&app.ctx).await.degraded;
    assert_eq!(degraded[0].detail, "These workers have panicked: planted.");
    // The last count may still be in progress, and writes are serialized.
    let written =
        app.ctx.store.write((), |tx, ()| Box::pin(store::quarantine::count_up(tx, "other", 1))).await;
    written.unwrap();
    let counted = app.ctx.store.read((), |tx, ()| Box::pin(store::quarantine::list_counters(tx))).await;
    assert!(counted.unwrap().contains(&("worker_panics".to_owned(), 8)));
}

#[tokio::test]
async fn a_failing_tick_is_repeated_at_least_every_four_seconds() {
    let (app, gaps, status) = gaps(Tick::Fails, 17).await;
    assert_eq!(gaps, [250, 500, 1_000, 2_000, 4_000, 4_000, 4_000]);
    assert_eq!((status.failed_ticks, status.panics), (8, 0));
    assert!(status.failing_since.is_some());
    assert!(app::health::readiness(&app.ctx).await.degraded.is_empty(), "a moment's failure is not shown");
    app.clock.advance(10_000);
    let degraded = app::health::readiness(&app.ctx).await.degraded;
    assert_eq!(degraded[0].detail, "These workers fail or hang: planted.");
}

#[tokio::test]
async fn a_tick_that_never_ends_is_cut_off() {
    let (_, gaps, status) = gaps(Tick::Hangs, 200).await;
    assert_eq!(gaps, [120_250]);
    assert_eq!(status.failed_ticks, 1);
    assert!(status.tick_began_at.is_some());
}

#[tokio::test]
async fn a_working_worker_is_healthy() {
    let (_, gaps, status) = gaps(Tick::Works, 25).await;
    assert_eq!(gaps, [10_000, 10_000]);
    assert_eq!(status, WorkerStatus::default());
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_restart() {
    let app = TestApp::new().await;
    let began = Arc::<Mutex<Vec<Instant>>>::default();
    let (stop, stopped) = watch::channel(false);
    let make = {
        let began = Arc::clone(&began);
        move || Planted { tick: Tick::Panics, began: Arc::clone(&began) }
    };
    let runs = supervise(make, app.ctx.clone(), Duration::from_secs(10), stopped);
    let stops = async {
        let mut polls = tokio::time::interval(Duration::from_millis(2));
        while began.lock().len() < 2 {
            polls.tick().await;
        }
        stop.send_replace(true);
    };
    tokio::join!(runs, stops);
    assert_eq!(began.lock().len(), 2);
}

#[tokio::test]
async fn a_moved_clock_wakes_a_worker_that_waits_for_its_timer() {
    const PAUSE: Duration = Duration::from_secs(10);
    let app = TestApp::new().await;
    let began = Arc::<Mutex<Vec<Instant>>>::default();
    let (stop, stopped) = watch::channel(false);
    let make = {
        let began = Arc::clone(&began);
        move || Planted { tick: Tick::Works, began: Arc::clone(&began) }
    };
    let runs = supervise(make, app.ctx.clone(), PAUSE, stopped);
    let moves = async {
        let mut polls = tokio::time::interval(Duration::from_millis(2));
        while began.lock().is_empty() {
            polls.tick().await;
        }
        app.test_clock().make_move(&app.ctx, ClockMove::By(60)).await.unwrap();
        while began.lock().len() < 2 {
            polls.tick().await;
        }
        stop.send_replace(true);
    };
    tokio::join!(runs, moves);
    let began = began.lock();
    assert!(began[1] - began[0] < PAUSE);
}
