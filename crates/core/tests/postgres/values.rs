use weft_core::sql::{Error, Value};

use crate::support::*;

/// Sends a value as a parameter of a type and reads it back.
async fn round_trip(kind: &str, value: Value) -> Value {
    let db = database(1);
    let mut result = query(&db, &format!("SELECT $1::{kind}"), vec![value])
        .await
        .unwrap();
    result.rows.remove(0).remove(0)
}

fn list(items: &[Value]) -> Value {
    Value::List(items.to_vec())
}

#[test]
fn every_type_is_read_as_it_was_written() {
    run(async {
        let uuid = "0190a5b0-7c4d-7abc-8def-0123456789ab";
        let stamp = |text: &str| Value::Timestamp(text.to_owned());
        for (kind, value) in [
            ("bool", Value::Bool(true)),
            ("bool", Value::Bool(false)),
            ("int2", Value::Int(-32_768)),
            ("int4", Value::Int(2_147_483_647)),
            ("int8", Value::Int(i64::MIN)),
            ("oid", Value::Int(4_294_967_295)),
            ("float4", Value::Float(0.1)),
            ("float8", Value::Float(1.0 / 3.0)),
            ("float8", Value::Float(f64::NEG_INFINITY)),
            ("numeric", text("12345678901234567890.0123456789")),
            ("text", text("žluťoučký \"kůň\" \\ {a,b}")),
            ("text", text("")),
            ("varchar(3)", text("abc")),
            ("bytea", Value::Bytes((0..=255).collect())),
            ("bytea", Value::Bytes(vec![])),
            ("uuid", text(uuid)),
            ("json", Value::Json("{\"a\": [1, null]}".to_owned())),
            ("jsonb", Value::Json("{\"a\": [1, null]}".to_owned())),
            ("date", Value::Date("2024-02-29".to_owned())),
            ("timestamp", stamp("2024-02-29T23:59:59.123456")),
            ("time", text("23:59:59.5")),
            ("interval", text("1 day 02:03:04")),
            ("inet", text("10.0.0.1")),
            (
                "int4[]",
                list(&[Value::Int(1), Value::Null, Value::Int(-3)]),
            ),
            (
                "text[]",
                list(&[text("a\"b\\c,{}"), text("NULL"), Value::Null, text("")]),
            ),
            ("bool[]", list(&[Value::Bool(true), Value::Bool(false)])),
            (
                "float8[]",
                list(&[Value::Float(0.5), Value::Float(f64::INFINITY)]),
            ),
            ("bytea[]", list(&[Value::Bytes(vec![0, 92, 255])])),
            ("uuid[]", list(&[text(uuid)])),
            ("jsonb[]", list(&[Value::Json("{\"a\": \"b\"}".to_owned())])),
            ("date[]", list(&[Value::Date("2024-02-29".to_owned())])),
            ("timestamp[]", list(&[stamp("2024-02-29T00:00:00")])),
            (
                "int4[]",
                list(&[list(&[Value::Int(1)]), list(&[Value::Int(2)])]),
            ),
            ("text[]", list(&[])),
            ("int8", Value::Null),
            ("text[]", Value::Null),
        ] {
            assert_eq!(round_trip(kind, value.clone()).await, value, "{kind}");
        }
        assert!(matches!(
            round_trip("float8", Value::Float(f64::NAN)).await,
            Value::Float(float) if float.is_nan()
        ));
    });
}

#[test]
fn values_are_brought_into_the_type_asked_for() {
    run(async {
        for (kind, given, read) in [
            ("int8", text("42"), Value::Int(42)),
            ("int4", Value::Bool(true), Value::Int(1)),
            ("bool", text("yes"), Value::Bool(true)),
            ("bool", Value::Int(0), Value::Bool(false)),
            ("numeric", Value::Int(5), text("5")),
            ("numeric", Value::Float(0.25), text("0.25")),
            ("text", Value::Int(5), text("5")),
            ("text", Value::Bool(true), text("true")),
            ("float8", Value::Int(5), Value::Float(5.0)),
            ("int4", Value::Float(5.0), Value::Int(5)),
            (
                "jsonb",
                list(&[Value::Int(1), text("a\"")]),
                Value::Json("[1, \"a\\\"\"]".to_owned()),
            ),
            ("jsonb", Value::Int(1), Value::Json("1".to_owned())),
            (
                "uuid",
                Value::Bytes(vec![0; 16]),
                text("00000000-0000-0000-0000-000000000000"),
            ),
            ("bytea", text("\\x41"), Value::Bytes(b"\\x41".to_vec())),
            (
                "date",
                text("2024-01-02"),
                Value::Date("2024-01-02".to_owned()),
            ),
            (
                "timestamp",
                text("2024-01-02 03:04:05"),
                Value::Timestamp("2024-01-02T03:04:05".to_owned()),
            ),
        ] {
            assert_eq!(
                round_trip(kind, given.clone()).await,
                read,
                "{given:?} as {kind}"
            );
        }
    });
}

#[test]
fn a_timestamp_with_time_zone_carries_the_offset_of_the_session() {
    run(async {
        let db = database(1);
        let tx = begin(&db);
        for (zone, read) in [
            ("Asia/Kolkata", "2024-01-02T05:30:00+05:30"),
            ("UTC", "2024-01-02T00:00:00+00:00"),
        ] {
            push(&tx, &format!("SET TIME ZONE '{zone}'"), vec![]);
            tx.flush().await.unwrap();
            let at = push(&tx, "SELECT '2024-01-02 00:00:00+00'::timestamptz", vec![]);
            tx.flush().await.unwrap();
            let mut result = tx.take_result(at).unwrap().unwrap();
            assert_eq!(
                result.rows.remove(0).remove(0),
                Value::Timestamp(read.to_owned())
            );
        }
        tx.rollback().await.unwrap();
    });
}

#[test]
fn types_of_the_database_itself_are_named_and_their_arrays_read() {
    run(async {
        let db = database(1);
        let mood = format!("weft_test_mood_{}", std::process::id());
        execute(&db, &format!("DROP TYPE IF EXISTS {mood}")).await;
        execute(&db, &format!("CREATE TYPE {mood} AS ENUM ('sad', 'happy')")).await;
        let statement = format!("SELECT $1::{mood}, $2::{mood}[]");
        let moods = list(&[text("sad"), Value::Null]);
        let result = query(&db, &statement, vec![text("happy"), moods.clone()]).await;
        execute(&db, &format!("DROP TYPE {mood}")).await;
        let result = result.unwrap();
        assert_eq!(result.rows, vec![vec![text("happy"), moods]]);
        assert_eq!(result.columns[0].type_name, mood);
        assert_eq!(result.columns[1].type_name, format!("_{mood}"));
    });
}

#[test]
fn a_statement_that_was_prepared_beside_a_failed_one_knows_its_types_when_it_runs_again() {
    run(async {
        let db = database(1);
        let mood = format!("weft_test_moods_{}", std::process::id());
        execute(&db, &format!("DROP TYPE IF EXISTS {mood}")).await;
        execute(&db, &format!("CREATE TYPE {mood} AS ENUM ('sad', 'happy')")).await;
        let select = format!("SELECT ARRAY['sad', 'happy']::{mood}[]");
        let tx = begin(&db);
        push(&tx, "SELECT 1", vec![]);
        tx.flush().await.unwrap();
        push(&tx, &select, vec![]);
        push(&tx, "SELECT nothing FROM nowhere", vec![]);
        let error = tx.flush().await.unwrap_err();
        tx.rollback().await.unwrap();
        let read = [
            query(&db, &select, vec![]).await,
            query(&db, &select, vec![]).await,
        ];
        execute(&db, &format!("DROP TYPE {mood}")).await;
        assert_eq!(sqlstate(&error), "42P01");
        for result in read {
            let moods = list(&[text("sad"), text("happy")]);
            assert_eq!(result.unwrap().rows, vec![vec![moods]]);
        }
        assert_eq!(db.stats().created, 1);
    });
}

#[test]
fn columns_have_their_name_and_the_servers_name_of_their_type() {
    run(async {
        let db = database(1);
        let result = execute(
            &db,
            "SELECT 1 AS a, 'x'::text AS \"B c\", '{}'::int8[] AS d",
        )
        .await;
        let columns: Vec<_> = result
            .columns
            .iter()
            .map(|column| (column.name.as_str(), column.type_name.as_str()))
            .collect();
        assert_eq!(columns, [("a", "int4"), ("B c", "text"), ("d", "_int8")]);
        assert_eq!(result.affected, 1);
    });
}

#[test]
fn a_value_of_the_wrong_kind_is_refused_before_anything_is_sent() {
    run(async {
        let db = database(1);
        for (kind, value, expected) in [
            (
                "int4",
                Value::Bytes(b"secret".to_vec()),
                "parameter 1 expects int4, got bytes",
            ),
            (
                "int2",
                Value::Int(70_000),
                "parameter 1 is out of range for int2",
            ),
            (
                "int4",
                Value::Float(0.5),
                "parameter 1 expects int4, got a float",
            ),
            ("text", text("a\0b"), "parameter 1 contains a NUL byte"),
            (
                "timestamptz",
                Value::Int(1),
                "parameter 1 expects timestamptz, got an int",
            ),
            (
                "int4[]",
                Value::Int(1),
                "parameter 1 expects int4[], got an int",
            ),
            (
                "uuid",
                Value::Bytes(vec![1]),
                "parameter 1 expects uuid, got bytes",
            ),
        ] {
            let statement = format!("SELECT $1::{kind}");
            let error = query(&db, &statement, vec![value]).await.unwrap_err();
            assert!(matches!(error, Error::Parameter { .. }), "{error}");
            let message = error.to_string();
            assert!(
                message.starts_with(expected) && message.contains(&statement),
                "{message}"
            );
            assert!(
                !message.contains("secret") && !message.contains("70000"),
                "{message}"
            );
        }
        let error = query(&db, "SELECT $1::int, $2::int", vec![Value::Int(1)])
            .await
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("has 2 parameters, but 1 were given"),
            "{error}"
        );
        let error = query(&db, "SELECT '\0'", vec![]).await.unwrap_err();
        assert!(matches!(error, Error::Parameter { .. }), "{error}");
        assert_eq!((db.stats().created, db.stats().broken), (1, 0));
    });
}

#[test]
fn an_error_of_the_server_never_repeats_a_parameter() {
    run(async {
        let table = Table::create("secret", "id text primary key, n int check (n > 0)").await;
        let db = database(1);
        let insert = format!("INSERT INTO {} VALUES ($1, $2)", table.name);
        query(&db, &insert, vec![text("secret"), Value::Int(1)])
            .await
            .unwrap();
        for (statement, params, expected) in [
            (
                insert.as_str(),
                vec![text("secret"), Value::Int(1)],
                "23505",
            ),
            (
                insert.as_str(),
                vec![text("other secret"), Value::Int(-1)],
                "23514",
            ),
            ("SELECT $1::int", vec![text("secret")], "22P02"),
            ("SELECT $1::timestamptz", vec![text("secret")], "22007"),
            ("SELECT $1::jsonb", vec![text("secret")], "22P02"),
        ] {
            let error = query(&db, statement, params).await.unwrap_err();
            assert_eq!(sqlstate(&error), expected);
            let without_statement = error.to_string().replace(statement, "");
            let message = without_statement.replace(&table.name, "");
            assert!(!message.contains("secret"), "{message}");
        }
        let error = query(&db, &insert, vec![text("secret"), Value::Int(1)])
            .await
            .unwrap_err();
        let Error::Server(error) = error else {
            panic!("{error}")
        };
        assert_eq!(error.constraint, Some(format!("{}_pkey", table.name)));
    });
}
