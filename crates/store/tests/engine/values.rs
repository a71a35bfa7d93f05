//! Values are read back as written, and affected rows are counted equally on both engines.

use std::net::IpAddr;

use domain::Timestamp;
use store::{SqlValue, Store, StoreError, params};

use crate::fixture::{NOW, add, count, insert, new_counter, prepare};

store::on_each_engine! {
    async fn nulls_bytes_texts_and_big_integers_round_trip(store: Store) {
        prepare(&store).await;
        for (value, note, raw) in [
            (i64::MAX, None, Some(vec![0_u8, 255, 39, 10])),
            (i64::MIN, Some("it's \"quoted\" \u{1F980} $1 ?"), None),
            (0, Some(""), Some(Vec::new())),
        ] {
            let back: Result<_, StoreError> = store
                .write((value, note, raw.clone()), |tx, (value, note, raw)| Box::pin(async move {
                    tx.exec("DELETE FROM counters", &[]).await?;
                    tx.exec(
                        "INSERT INTO counters (name, value, note, raw) VALUES ($1, $2, $3, $4)",
                        &params!["a", *value, *note, raw.as_deref()],
                    )
                    .await?;
                    tx.find("SELECT value, note, raw FROM counters", &[], |row| {
                        Ok((row.get("value")?, row.get("note")?, row.get("raw")?))
                    })
                    .await
                }))
                .await;
            assert_eq!(back, Ok(Some((value, note.map(str::to_owned), raw))));
        }
    }

    async fn timestamps_are_stored_to_the_millisecond(store: Store) {
        prepare(&store).await;
        let at = Timestamp::from_ms(1_777_464_000_123);
        let back: Result<_, StoreError> = store
            .write(at, |tx, at| Box::pin(async move {
                tx.exec("INSERT INTO counters (name, value) VALUES ($1, $2)", &params!["a", *at]).await?;
                tx.find("SELECT value, NULL AS missing FROM counters WHERE value >= $1 - 1000", &params![*at], |row| {
                    Ok((row.get("value")?, row.get::<Option<Timestamp>>("missing")?))
                })
                .await
            }))
            .await;
        assert_eq!(back, Ok(Some((at, None))));
    }

    async fn only_changed_rows_are_counted_as_affected(store: Store) {
        prepare(&store).await;
        let counts: Result<_, StoreError> = store
            .write((), |tx, ()| Box::pin(async move {
                let insert_new = "INSERT INTO counters (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
                let raise = "INSERT INTO counters (name, value) VALUES ($1, $2) ON CONFLICT (name)
                    DO UPDATE SET value = excluded.value WHERE counters.value < excluded.value";
                Ok([
                    tx.exec(insert_new, &params!["a", 1]).await?,
                    tx.exec(insert_new, &params!["a", 2]).await?,
                    tx.exec(raise, &params!["a", 3]).await?,
                    tx.exec(raise, &params!["a", 2]).await?,
                    tx.exec("INSERT INTO counters (name, value) VALUES ('b', 1), ('c', 1)", &[]).await?,
                    tx.exec("UPDATE counters SET value = 9", &[]).await?,
                    tx.exec("UPDATE counters SET value = 9 WHERE name = $1", &params!["none"]).await?,
                    tx.exec("DELETE FROM counters WHERE name <> $1", &params!["a"]).await?,
                ])
            }))
            .await;
        assert_eq!(counts, Ok([1, 0, 1, 0, 2, 3, 0, 2]));
    }

    async fn returning_gives_the_written_rows(store: Store) {
        prepare(&store).await;
        new_counter(&store, "a", 1).await;
        new_counter(&store, "b", 2).await;
        let returned: Result<_, StoreError> = store
            .write((), |tx, ()| Box::pin(async move {
                let one = tx
                    .find("UPDATE counters SET value = value * 10 RETURNING value", &[], |row| row.only::<i64>())
                    .await?;
                let mut all = tx
                    .list("UPDATE counters SET value = value + 1 RETURNING value", &[], |row| row.only::<i64>())
                    .await?;
                all.sort_unstable();
                Ok((one.is_some(), all))
            }))
            .await;
        assert_eq!(returned, Ok((true, vec![11, 21])));
    }

    async fn a_statement_runs_for_each_row_in_order(store: Store) {
        prepare(&store).await;
        let counts: Result<_, StoreError> = store
            .write((), |tx, ()| Box::pin(async move {
                let names: Vec<String> = (0..600).map(|n| format!("counter {}", n % 599)).collect();
                let rows: Vec<Vec<SqlValue<'_>>> = names
                    .iter()
                    .enumerate()
                    .map(|(n, name)| vec![name.into(), SqlValue::Int(n as i64), (n > 3).then_some("late").into()])
                    .collect();
                tx.exec_each(
                    "INSERT INTO counters (name, value, note) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING",
                    &rows,
                )
                .await
            }))
            .await;
        let counts = counts.unwrap();
        assert_eq!((counts.len(), counts[..599].iter().sum::<u64>(), counts[599]), (600, 599, 0));
        assert_eq!(count(&store).await, 599);
    }

    async fn one_invalid_row_of_many_fails_the_unit_with_its_error(store: Store) {
        prepare(&store).await;
        let refused: Result<_, StoreError> = store
            .write((), |tx, ()| Box::pin(async move {
                let rows: Vec<_> =
                    ["a", "b", "a", "c"].into_iter().map(|name| vec![SqlValue::from(name), SqlValue::Int(1)]).collect();
                tx.exec_each("INSERT INTO counters (name, value) VALUES ($1, $2)", &rows).await
            }))
            .await;
        assert_eq!(refused, Err(StoreError::Conflict { constraint: "counters_pkey".to_owned() }));
        assert_eq!(count(&store).await, 0);
    }

    async fn a_row_that_does_not_parse_is_named_and_can_be_skipped(store: Store) {
        prepare(&store).await;
        let rows: Result<_, StoreError> = store
            .write((), |tx, ()| Box::pin(async move {
                for (id, owner) in [("1", "127.0.0.1"), ("2", "nowhere"), ("3", "::1")] {
                    tx.exec("INSERT INTO items (id, owner) VALUES ($1, $2)", &params![id, owner]).await?;
                }
                let sql = "SELECT id, owner FROM items ORDER BY id";
                let strict = tx.list(sql, &[], |row| row.get::<IpAddr>("owner")).await;
                let lenient = tx.list(sql, &[], |row| Ok(row.get::<IpAddr>("owner").is_ok())).await?;
                Ok((strict.unwrap_err(), lenient))
            }))
            .await;
        let (error, lenient) = rows.unwrap();
        assert_eq!(error.to_string(), "stored value of column owner (row 2) is corrupt: not a IpAddr");
        assert_eq!(lenient, [true, false, true]);
    }

    async fn a_value_of_another_type_is_reported_as_corrupt(store: Store) {
        prepare(&store).await;
        new_counter(&store, "a", -1).await;
        let read: Result<_, StoreError> = store
            .read((), |tx, ()| Box::pin(tx.find("SELECT value, name, note FROM counters", &[], |row| {
                Ok([
                    row.get::<String>("value").err(),
                    row.get::<i64>("name").err(),
                    row.get::<Vec<u8>>("name").err(),
                    row.get::<String>("note").err(),
                    row.get::<u64>("value").err(),
                    row.get::<i64>("other").err(),
                ])
            })))
            .await;
        let [text, int, bytes, null, number, column] = read.unwrap().unwrap();
        for error in [text, int, bytes, null, number] {
            assert!(matches!(error, Some(StoreError::Corrupt { .. })), "{error:?}");
        }
        assert!(matches!(column, Some(StoreError::Driver(_))), "{column:?}");
    }

    async fn booleans_are_read_as_one_and_zero(store: Store) {
        prepare(&store).await;
        let sql = "SELECT EXISTS (SELECT 1 FROM counters) AS has_rows, NOT EXISTS (SELECT 1 FROM counters) AS is_empty, 1 AS one";
        let found: Result<_, StoreError> = store
            .read((), move |tx, ()| Box::pin(tx.find(sql, &[], |row| Ok([row.get("has_rows")?, row.get("is_empty")?, row.get("one")?]))))
            .await;
        assert_eq!(found, Ok(Some([0_i64, 1, 1])));
    }

    async fn text_with_nul_is_rejected_before_the_database(store: Store) {
        prepare(&store).await;
        let refused: Result<u64, StoreError> = store.write((), |tx, ()| insert(tx, "a\0b", 1)).await;
        assert!(matches!(refused, Err(StoreError::Nul)), "{refused:?}");
    }

    async fn the_first_value_of_any_parameter_may_be_null(store: Store) {
        prepare(&store).await;
        new_counter(&store, "a", 0).await;
        let set: Result<Option<(String, Vec<u8>, Timestamp)>, StoreError> = store
            .write(NOW, |tx, now| Box::pin(async move {
                let sql = "UPDATE counters SET note = $1, raw = $2, value = COALESCE($3, value)";
                tx.exec(sql, &params![None::<&str>, None::<&[u8]>, None::<i64>]).await?;
                tx.exec(sql, &params![Some("n"), Some(&b"r"[..]), Some(*now)]).await?;
                add(tx, "a", 1).await?;
                tx.find("SELECT note, raw, value FROM counters", &[], |row| {
                    Ok((row.get("note")?, row.get("raw")?, row.get("value")?))
                })
                .await
            }))
            .await;
        assert_eq!(set, Ok(Some(("n".to_owned(), b"r".to_vec(), NOW.plus_ms(1)))));
    }

    async fn a_nullable_filter_has_a_cast_to_its_type(store: Store) {
        prepare(&store).await;
        new_counter(&store, "a", 1).await;
        new_counter(&store, "b", 2).await;
        let sql = "SELECT name FROM counters WHERE CAST($1 AS TEXT) IS NULL OR name = $1 ORDER BY name";
        for (filter, expected) in [(None, vec!["a", "b"]), (Some("b"), vec!["b"])] {
            let names: Result<Vec<String>, StoreError> = store
                .read(filter, move |tx, filter| Box::pin(async move {
                    tx.list(sql, &params![*filter], |row| row.only::<String>()).await
                }))
                .await;
            assert_eq!(names.unwrap(), expected);
        }
    }
}
