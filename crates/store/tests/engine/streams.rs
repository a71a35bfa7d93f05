//! The publication of events and movements, read with PostgreSQL's own `pg_recvlogical`, as a data
//! platform would read it.
//!
//! Needs a test cluster with `wal_level=logical`, which `scripts/postgres` starts, and
//! `pg_recvlogical` in the path.

use std::process::Command;

use alloy_primitives::{Address, B256};
use domain::event::EventKind;
use domain::ids::{EventId, MarketId, UserId};
use domain::{Usdc, UsdcDelta, Wad};
use store::events::NewEvent;
use store::movements::{Movement, MovementKind};
use store::publication::PUBLISHED;
use store::testing::TestDatabase;
use store::{Store, StoreError, Tx, params};

use crate::fixture::NOW;

/// Returns the text of an id with this number.
fn id(number: u64) -> String {
    format!("00000000-0000-7000-8000-{number:012}")
}

fn ada() -> UserId {
    id(1).parse().unwrap()
}

fn market() -> MarketId {
    id(2).parse().unwrap()
}

/// A change of a row, as the stream shows it. A deletion shows only the key.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    operation: char,
    table: String,
    /// The columns with their texts. `None` is NULL.
    row: Vec<(String, Option<String>)>,
}

impl Change {
    fn value(&self, name: &str) -> Option<&str> {
        self.row.iter().find(|(column, _)| column == name).and_then(|(_, value)| value.as_deref())
    }
}

/// Reads the messages of the plugin `pgoutput`, protocol version 1. `pg_recvlogical` writes a line
/// feed after each.
struct Messages<'a> {
    rest: &'a [u8],
    /// The id, name and columns of each table that was announced.
    tables: Vec<(u32, String, Vec<String>)>,
}

impl Messages<'_> {
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        taken.to_vec()
    }

    fn number(&mut self, bytes: usize) -> u32 {
        self.bytes(bytes).into_iter().fold(0, |number, byte| number << 8 | u32::from(byte))
    }

    fn text(&mut self) -> String {
        let end = self.rest.iter().position(|byte| *byte == 0).unwrap();
        let text = String::from_utf8(self.bytes(end)).unwrap();
        self.bytes(1);
        text
    }

    fn relation(&mut self) {
        let (id, schema, name) = (self.number(4), self.text(), self.text());
        assert_eq!(schema, "public");
        self.bytes(1);
        let columns = (0..self.number(2)).map(|_| {
            self.bytes(1);
            let name = self.text();
            self.bytes(8);
            name
        });
        let columns = columns.collect();
        self.tables.push((id, name, columns));
    }

    fn change(&mut self, operation: char) -> Change {
        let id = self.number(4);
        let (_, table, columns) = self.tables.iter().rfind(|(known, ..)| *known == id).unwrap().clone();
        // Which row follows: the new one, the old one, or the old one's key.
        self.bytes(1);
        let count = self.number(2) as usize;
        let values = (0..count).map(|_| match self.bytes(1)[0] {
            b't' => {
                let length = self.number(4) as usize;
                Some(String::from_utf8(self.bytes(length)).unwrap())
            }
            _ => None,
        });
        let values: Vec<_> = values.collect();
        Change { operation, table, row: columns.into_iter().zip(values).collect() }
    }

    fn all(mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        while !self.rest.is_empty() {
            match self.bytes(1)[0] {
                b'B' => drop(self.bytes(20)),
                b'C' => drop(self.bytes(25)),
                b'R' => self.relation(),
                kind @ (b'I' | b'U' | b'D') => changes.push(self.change(char::from(kind))),
                other => panic!("an unexpected message {:?}", char::from(other)),
            }
            assert_eq!(self.bytes(1), b"\n");
        }
        changes
    }
}

fn event(number: u64) -> NewEvent {
    NewEvent {
        id: id(number).parse::<EventId>().unwrap(),
        user_id: ada(),
        kind: EventKind::MarketResolved,
        key_id: None,
        trade_id: None,
        body: format!("{{\"number\":{number}}}"),
        at: NOW,
    }
}

fn movement(block_number: u64) -> Movement {
    Movement {
        id: Movement::id_at(block_number, 0),
        block_number,
        log_index: 0,
        tx_hash: B256::repeat_byte(7),
        kind: MovementKind::Buy,
        market_id: market(),
        outcome_index: 1,
        account: Address::repeat_byte(9),
        counterparty: None,
        usdc: Usdc::from_whole(25),
        tokens: Wad::ONE,
        fee: Usdc::ZERO,
        cost: None,
        quantity: None,
        trade_id: None,
        created_at: NOW,
        realized_pnl: UsdcDelta(0),
    }
}

async fn set_up(tx: &mut Tx) -> Result<(), StoreError> {
    const USER: &str = "INSERT INTO users (id, name, created_at_ms) VALUES ($1, 'ada', 0)";
    const MARKET_ROW: &str = "INSERT INTO markets (id, chain_id, contract_address, question, tags, status, fee_bps,
        liquidity_usdc_atomic, opening_cost_wad, cost_wad, volume_usdc_atomic, trade_count, end_time_ms, as_of_block,
        as_of_ms, created_at_ms) VALUES ($1, 1, '', '', '[]', 'OPEN', 0, 0, '0', '0', 0, 0, 0, 0, 0, 0)";
    tx.exec(USER, &params![ada()]).await?;
    tx.exec(MARKET_ROW, &params![market()]).await.map(drop)
}

async fn change(tx: &mut Tx, step: u8) -> Result<(), StoreError> {
    match step {
        0 => {
            store::events::emit(tx, event(1));
            store::movements::insert(tx, &[movement(10), movement(11)]).await
        }
        1 => {
            store::events::emit(tx, event(2));
            store::movements::delete_after(tx, 10).await
        }
        _ => {
            let profitable = Movement { realized_pnl: UsdcDelta(5), ..movement(10) };
            store::movements::put_realized(tx, &[profitable]).await
        }
    }
}

async fn one(store: &Store, sql: &'static str) -> String {
    let found: Result<Option<String>, StoreError> =
        store.read(sql, |tx, sql| Box::pin(tx.find(sql, &[], |row| row.only()))).await;
    found.unwrap().unwrap()
}

/// Runs `pg_recvlogical` on the test's slot.
fn receive(url: &str, arguments: &[&str]) {
    let output =
        Command::new("pg_recvlogical").args(["-d", url, "--slot", "streams"]).args(arguments).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Returns a migrated database, or says why the test does not run.
async fn database() -> Option<(TestDatabase, Store)> {
    let database = TestDatabase::create().await?;
    let store = Store::open(&database.url).await.unwrap();
    let level = one(&store, "SELECT setting FROM pg_settings WHERE name = 'wal_level'").await;
    if level != "logical" {
        eprintln!("skipped: the test cluster has wal_level={level}; start one with scripts/postgres");
        return None;
    }
    if Command::new("pg_recvlogical").arg("--version").output().is_err() {
        eprintln!("skipped: pg_recvlogical is not installed");
        return None;
    }
    store.migrate(NOW).await.unwrap();
    Some((database, store))
}

#[tokio::test]
async fn a_publication_streams_every_change_of_events_and_movements_in_order() {
    let Some((database, store)) = database().await else { return };
    let name = "streams".parse().unwrap();
    assert!(store.publish(&name).await.unwrap().unwrap().is_new);
    assert!(!store.publish(&name).await.unwrap().unwrap().is_new);
    receive(&database.url, &["--create-slot", "--plugin", "pgoutput"]);
    let written: Result<(), StoreError> = store.write((), |tx, ()| Box::pin(set_up(tx))).await;
    written.unwrap();
    for step in 0..3_u8 {
        let written: Result<(), StoreError> = store.write(step, |tx, step| Box::pin(change(tx, *step))).await;
        written.unwrap();
    }
    let end = one(&store, "SELECT pg_current_wal_lsn()::text").await;
    let file = std::env::temp_dir().join(format!("foretell-streams-{}", std::process::id()));
    let path = file.to_str().unwrap();
    let options = ["--option", "proto_version=1", "--option", "publication_names=streams"];
    receive(
        &database.url,
        &[&["--start", "--no-loop", "--endpos", &end, "--file", path][..], &options].concat(),
    );
    receive(&database.url, &["--drop-slot"]);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();

    let changes = Messages { rest: &bytes, tables: Vec::new() }.all();
    let told: Vec<_> =
        changes.iter().map(|c| (c.operation, c.table.as_str(), c.value("id").unwrap())).collect();
    let (first, second) = (Movement::id_at(10, 0), Movement::id_at(11, 0));
    let [one, two] = [1, 2].map(id);
    // A unit of work writes its events last.
    assert_eq!(
        told,
        [
            ('I', "movements", first.as_str()),
            ('I', "movements", second.as_str()),
            ('I', "events", one.as_str()),
            ('D', "movements", second.as_str()),
            ('I', "events", two.as_str()),
            ('U', "movements", first.as_str()),
        ]
    );
    assert_eq!((changes[2].value("seq"), changes[4].value("seq")), (Some("1"), Some("2")));
    assert_eq!(changes[2].value("body"), Some("{\"number\":1}"));
    assert_eq!(changes[0].value("usdc_atomic"), Some("25000000"));
    assert_eq!(changes[5].value("realized_pnl_usdc_atomic"), Some("5"));
    // Exactly the documented columns, in any order.
    for (table, columns) in PUBLISHED {
        let inserted =
            changes.iter().find(|change| change.operation == 'I' && change.table == table).unwrap();
        let mut streamed: Vec<_> = inserted.row.iter().map(|(name, _)| name.as_str()).collect();
        let mut documented: Vec<_> = columns.split(',').map(str::trim).collect();
        streamed.sort_unstable();
        documented.sort_unstable();
        assert_eq!(streamed, documented, "{table}");
    }
    store.close().await;
}

#[tokio::test]
async fn sqlite_has_no_publications() {
    let store = store::testing::sqlite().await;
    assert_eq!(store.publish(&"streams".parse().unwrap()).await.unwrap(), None);
}

/// The columns of a table in the documentation.
fn documented(page: &str, table: &str) -> Vec<String> {
    let section =
        page.split("\n## ").find(|section| section.starts_with(&format!("Read `{table}`"))).unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split('`').next()).map(str::to_owned).collect()
}

#[test]
fn the_page_about_streams_documents_every_published_column() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/streams.md")).unwrap();
    for (table, columns) in PUBLISHED {
        let columns: Vec<_> = columns.split(',').map(str::trim).collect();
        assert_eq!(documented(&page, table), columns, "{table}");
    }
}
