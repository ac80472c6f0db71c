use weft_core::sql::Value;

use crate::support::*;

/// High-water mark of the process's memory, from the kernel.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_ascii_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn a_million_rows_pass_through_little_memory() {
    run(async {
        let db = database(1);
        let statement = sql(
            "SELECT n, repeat('x', 100) FROM generate_series(1, $1::int) AS n",
            vec![Value::Int(1_000_000)],
        );
        let mut stream = db.stream(statement, 5_000);
        stream.next().await.unwrap();
        let before = peak_kib();
        let mut next = 5_001;
        while let Some(rows) = stream.next().await.unwrap() {
            assert!(rows.len() <= 5_000);
            for row in rows {
                assert_eq!(row[0], Value::Int(next));
                next += 1;
            }
        }
        assert_eq!(next, 1_000_001);
        let grown = peak_kib() - before;
        // All rows together are well above 150 MiB; other tests of this process share the mark.
        assert!(grown < 100 * 1024, "the peak grew by {grown} KiB");
        assert_eq!(stream.columns().len(), 2);
        assert_eq!(db.stats().in_use, 0);
    });
}

#[test]
fn a_stream_dropped_early_gives_its_connection_back() {
    run(async {
        let db = database(1);
        let statement = sql("SELECT generate_series(1, 100000000)", vec![]);
        let mut stream = db.stream(statement, 10);
        assert_eq!(stream.next().await.unwrap().unwrap().len(), 10);
        drop(stream);
        assert_eq!(scalar(&db, "SELECT 1").await, Value::Int(1));
        assert_eq!(db.stats().created, 1);
    });
}

#[test]
fn a_stream_of_exactly_full_chunks_ends_without_an_empty_one() {
    run(async {
        let db = database(1);
        let mut stream = db.stream(sql("SELECT generate_series(1, 4)", vec![]), 2);
        assert_eq!(stream.next().await.unwrap().unwrap().len(), 2);
        assert_eq!(stream.next().await.unwrap().unwrap().len(), 2);
        assert_eq!(stream.next().await.unwrap(), None);
        assert_eq!(stream.next().await.unwrap(), None);
        let mut empty = db.stream(sql("SELECT 1 WHERE false", vec![]), 2);
        assert_eq!(empty.next().await.unwrap(), None);
        assert_eq!(db.stats().in_use, 0);
    });
}

#[test]
fn an_error_in_the_middle_of_a_stream_ends_it_and_keeps_the_connection() {
    run(async {
        let db = database(1);
        let statement = sql(
            "SELECT 10 / (6 - n) FROM generate_series(1, 10) AS n",
            vec![],
        );
        let mut stream = db.stream(statement, 2);
        assert!(stream.next().await.is_ok());
        assert!(stream.next().await.is_ok());
        assert_eq!(sqlstate(&stream.next().await.unwrap_err()), "22012");
        assert_eq!(stream.next().await.unwrap(), None);
        let mut wrong = db.stream(sql("SELECT nothing", vec![]), 2);
        assert_eq!(sqlstate(&wrong.next().await.unwrap_err()), "42703");
        let mut misfit = db.stream(sql("SELECT $1::int", vec![text("\0")]), 2);
        assert!(misfit.next().await.is_err());
        assert_eq!(scalar(&db, "SELECT 1").await, Value::Int(1));
        assert_eq!((db.stats().created, db.stats().broken), (1, 0));
    });
}
