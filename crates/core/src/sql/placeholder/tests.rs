use std::sync::Arc;

use super::placeholders::Placeholders;
use super::*;
use crate::sql::{Error, Value};

fn postgres(sql: &str) -> String {
    ParsedSql::parse(Dialect::Postgres, sql)
        .unwrap()
        .sql
        .to_string()
}

fn sqlite(sql: &str) -> String {
    ParsedSql::parse(Dialect::Sqlite, sql)
        .unwrap()
        .sql
        .to_string()
}

fn message(result: Result<impl std::fmt::Debug, Error>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn placeholders_are_numbered_in_the_dialect_of_the_driver() {
    assert_eq!(postgres("SELECT ?, ?"), "SELECT $1, $2");
    assert_eq!(sqlite("SELECT ?, ?"), "SELECT ?1, ?2");
    assert_eq!(
        postgres("WHERE a=:a AND b IN(:b,:a)"),
        "WHERE a=$1 AND b IN($2,$1)"
    );
    assert_eq!(sqlite(":größe"), "?1");
    assert_eq!(postgres("a=?AND b=?"), "a=$1 AND b=$2");
}

#[test]
fn mysql_has_comments_and_escapes_of_its_own() {
    let rewritten =
        |sql: &str| ParsedSql::parse(Dialect::Mysql, sql).map(|parsed| parsed.sql.to_string());
    for sql in [
        r"SELECT 'it\'s ? :a', `? :b`",
        "SELECT 1 # ? :a",
        "SELECT 1 -- ? :a",
        "SELECT @x := 1, '?' /* ? /* ? */",
        "SELECT arr[1]",
    ] {
        assert_eq!(rewritten(sql).unwrap(), sql);
    }
    assert_eq!(
        rewritten("SELECT 5--:a # ?\n, :b").unwrap(),
        "SELECT 5--? # ?\n, ?"
    );
    assert_eq!(
        rewritten("SELECT /*! ?, */ ?").unwrap(),
        "SELECT /*! ?, */ ?"
    );
    assert!(rewritten("SELECT a ?? b").is_err());
}

#[test]
fn a_name_used_twice_is_bound_twice_where_parameters_have_no_numbers() {
    let parsed = ParsedSql::parse(Dialect::Mysql, "SELECT :b, :a, :b").unwrap();
    let values = vec![
        ("a".to_owned(), Value::Int(1)),
        ("b".to_owned(), Value::Int(2)),
    ];
    let bound = parsed.bind(Params::Named(values)).unwrap();
    assert_eq!(bound, [Value::Int(2), Value::Int(1), Value::Int(2)]);
}

#[test]
fn a_list_is_refused_where_in_would_compare_it_as_one_value() {
    let list = || Value::List(vec![Value::Int(1), Value::Int(2)]);
    for dialect in [Dialect::Mysql, Dialect::Sqlite] {
        for sql in [
            "DELETE FROM t WHERE id NOT IN (?)",
            "SELECT 1 in(?)",
            "SELECT 1 IN\n( ? )",
        ] {
            let parsed = ParsedSql::parse(dialect, sql).unwrap();
            let error = message(parsed.bind(Params::Positional(vec![list()])));
            assert!(error.starts_with("parameter 1 is a list"), "{error}");
            assert!(error.contains("IN (?, ?, ?)"), "{error}");
            assert!(parsed.bind(Params::Positional(vec![Value::Int(1)])).is_ok());
        }
        let named = ParsedSql::parse(dialect, "SELECT :a, :b IN (:ids)").unwrap();
        let values = [("a", list()), ("b", list()), ("ids", list())];
        let values = values.map(|(name, value)| (name.to_owned(), value)).into();
        let error = message(named.bind(Params::Named(values)));
        assert!(error.starts_with("parameter :ids is a list"), "{error}");
        for sql in [
            "SELECT 1 IN (SELECT value FROM json_each(?))",
            "INSERT INTO t VALUES (?)",
            "SELECT builtin(?)",
            "SELECT 'in (' || ?",
        ] {
            let parsed = ParsedSql::parse(dialect, sql).unwrap();
            assert!(
                parsed.bind(Params::Positional(vec![list()])).is_ok(),
                "{sql}"
            );
        }
    }
    // `tags IN (?)` compares an array with a list.
    let parsed = ParsedSql::parse(Dialect::Postgres, "SELECT tags IN (?)").unwrap();
    assert!(parsed.bind(Params::Positional(vec![list()])).is_ok());
}

#[test]
fn a_question_mark_without_a_parameter_may_be_an_operator_of_postgres() {
    let missing = |dialect| {
        let parsed = ParsedSql::parse(dialect, "SELECT a ? 'b'").unwrap();
        message(parsed.bind(Params::Positional(vec![])))
    };
    assert!(missing(Dialect::Postgres).contains("write ?? for the operator ?"));
    assert!(!missing(Dialect::Sqlite).contains("??"));
}

#[test]
fn text_without_placeholders_is_shared_not_copied() {
    let parsed = ParsedSql::parse(Dialect::Postgres, "SELECT 1").unwrap();
    assert!(Arc::ptr_eq(&parsed.sql, &parsed.source));
}

#[test]
fn strings_identifiers_comments_and_casts_are_left_alone() {
    for sql in [
        "SELECT 'it''s ? :a' || \"?\"\":b\"",
        "SELECT E'\\'? :a', e'\\\\', U&'\\0041 ? '' :a'",
        "SELECT $$ ? :a $ $x$ $$, $tag$ ? $$ :a $tag$",
        "SELECT 1 -- ? :a\n, 2 /* ? /* :a */ ? */",
        "SELECT a::int, ARRAY[1,2][1:2], f(x := 1)",
        "SELECT v[lo:hi], v[(1):hi], v[x[1]:hi]",
        "SELECT 'unterminated ? :a",
        "SELECT \"unterminated ? :a",
        "SELECT /* unterminated /* ? */ :a",
        "SELECT $q$ unterminated ? :a $q",
        "SELECT E'unterminated \\",
        "SELECT a$1$ + 12",
    ] {
        assert_eq!(postgres(sql), sql);
    }
    for sql in [
        "SELECT `?``:a`, [? :a], '?'':a', \"?\"",
        "SELECT 1 /* ? /* :a */",
        "SELECT x'00' -- ? :a",
        "SELECT [unterminated ? :a",
    ] {
        assert_eq!(sqlite(sql), sql);
    }
}

#[test]
fn placeholders_after_a_skipped_part_are_found() {
    assert_eq!(postgres("'\\' || ?"), "'\\' || $1");
    assert_eq!(postgres("E'\\'' || ?"), "E'\\'' || $1");
    assert_eq!(postgres("name'\\' || ?"), "name'\\' || $1");
    assert_eq!(postgres("$a$ $b$ $a$ ?"), "$a$ $b$ $a$ $1");
    assert_eq!(postgres("a::int[] = :a::int[]"), "a::int[] = $1::int[]");
    assert_eq!(postgres("v[:lo:2]"), "v[$1:2]");
    assert_eq!(sqlite("/* /* */ ? -- x\n, ?"), "/* /* */ ?1 -- x\n, ?2");
    assert_eq!(postgres("/* /* */ ? */ ?"), "/* /* */ ? */ $1");
}

#[test]
fn a_doubled_question_mark_is_an_operator() {
    assert_eq!(postgres("doc ?? ? AND doc ??| ?"), "doc ? $1 AND doc ?| $2");
    assert_eq!(postgres("doc ?? 'a'"), "doc ? 'a'");
}

#[test]
fn mixing_kinds_of_placeholders_is_refused() {
    assert_eq!(
        message(ParsedSql::parse(Dialect::Postgres, "SELECT ?, :a")),
        "the statement mixes ? placeholders with named ones (:a); use one kind [statement: SELECT ?, :a]"
    );
    assert!(message(ParsedSql::parse(Dialect::Sqlite, "SELECT :a, ?")).contains("mixes"));
    assert!(message(ParsedSql::parse(Dialect::Postgres, "SELECT $1, ?")).contains("mixes $1"));
    assert!(message(ParsedSql::parse(Dialect::Sqlite, "SELECT ?1")).contains("?1"));
}

#[test]
fn more_placeholders_than_the_database_accepts_are_refused() {
    assert!(ParsedSql::parse(Dialect::Sqlite, &"?,".repeat(32_766)).is_ok());
    assert!(message(ParsedSql::parse(Dialect::Sqlite, &"?,".repeat(32_767))).contains("32766"));
    assert!(message(ParsedSql::parse(Dialect::Postgres, &"?,".repeat(65_536))).contains("65535"));
}

#[test]
fn named_parameters_are_bound_in_the_order_of_their_numbers() {
    let parsed = ParsedSql::parse(Dialect::Sqlite, "SELECT :b, :a, :b").unwrap();
    let params = Params::Named(vec![
        ("a".into(), Value::Int(1)),
        (":b".into(), Value::Int(2)),
    ]);
    assert_eq!(parsed.bind(params).unwrap(), [Value::Int(2), Value::Int(1)]);
}

#[test]
fn a_list_stays_one_parameter() {
    let parsed = ParsedSql::parse(Dialect::Postgres, "SELECT ANY(?)").unwrap();
    let list = Value::List(vec![Value::Int(1), Value::Int(2)]);
    assert_eq!(
        parsed.bind(Params::Positional(vec![list.clone()])).unwrap(),
        [list]
    );
}

#[test]
fn an_error_names_the_parameter_and_the_statement_but_no_value() {
    let secret = || Value::Text("hunter2".into());
    let named = |pairs: &[&str]| {
        Params::Named(
            pairs
                .iter()
                .map(|name| ((*name).into(), secret()))
                .collect(),
        )
    };
    for (sql, params, expected) in [
        (
            "SELECT :a, :b",
            named(&["a"]),
            "no value was given for :b [statement: SELECT :a, :b]",
        ),
        (
            "SELECT :a",
            named(&["a", "z"]),
            "parameter :z is not in the statement, which has :a [statement: SELECT :a]",
        ),
        (
            "SELECT :a",
            named(&["a", ":a"]),
            "parameter :a was given twice [statement: SELECT :a]",
        ),
        (
            "SELECT ?, ?",
            Params::Positional(vec![secret()]),
            "the statement has 2 ? placeholders, but 1 parameter was given [statement: SELECT ?, ?]",
        ),
        (
            "SELECT 1",
            Params::Positional(vec![secret(), secret()]),
            "the statement has no placeholder (? or :name), but 2 parameters were given [statement: SELECT 1]",
        ),
        (
            "SELECT ?",
            named(&["a"]),
            "the statement has ? placeholders, but named parameters were given (:a) [statement: SELECT ?]",
        ),
        (
            "SELECT 1",
            named(&["a"]),
            "the statement has no placeholder, but parameters were given for :a [statement: SELECT 1]",
        ),
        (
            "SELECT :a",
            Params::Positional(vec![]),
            "the statement has named placeholders (:a), but 0 positional parameters were given [statement: SELECT :a]",
        ),
    ] {
        let parsed = ParsedSql::parse(Dialect::Postgres, sql).unwrap();
        assert_eq!(message(parsed.bind(params)), expected);
    }
}

#[test]
fn no_parameters_fit_a_statement_without_placeholders() {
    let parsed = ParsedSql::parse(Dialect::Postgres, "SELECT 1").unwrap();
    assert_eq!(parsed.bind(Params::Named(vec![])).unwrap(), []);
    assert_eq!(parsed.bind(Params::Positional(vec![])).unwrap(), []);
}

#[test]
fn the_parse_cache_gives_the_same_text_once() {
    let mut cache = ParseCache::new(Dialect::Postgres, 2);
    let first = Arc::clone(&cache.parse("SELECT ?").unwrap().sql);
    assert!(Arc::ptr_eq(&first, &cache.parse("SELECT ?").unwrap().sql));
    assert!(cache.parse("SELECT ?, :a").is_err());
}

/// xorshift64*: the same statements on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

#[test]
fn any_text_parses_or_is_refused_without_a_panic() {
    let pieces = [
        "'", "\"", "`", "[", "]", "$", "$$", "$a$", "$1", "?", "??", ":", "::", ":a", ":é", "é",
        "𝄞", "\\", "E'", "--", "\n", "/*", "*/", "U&'", " ", "a", "1", "\0", ":=", "\u{7f}", "(",
        ")", "?1",
    ];
    let mut random = Random(0x5EED);
    for _ in 0..50_000 {
        let text: String = (0..random.below(14))
            .map(|_| random.pick(&pieces))
            .collect();
        for dialect in [Dialect::Postgres, Dialect::Sqlite] {
            if let Ok(parsed) = ParsedSql::parse(dialect, &text) {
                let values = vec![Value::Null; parsed.parameter_count()];
                assert!(
                    matches!(parsed.placeholders, Placeholders::Named(_))
                        || parsed.bind(Params::Positional(values)).is_ok()
                );
            }
        }
    }
}

#[test]
fn only_real_placeholders_of_a_generated_statement_change() {
    let opaque = [
        "'? :a'",
        "'it''s ?'",
        "\"? :a\"",
        "/* ? :a */",
        "-- ? :a\n",
        "1",
        "\"é\"",
        "x",
        "'𝄞?'",
        "a::int",
        "E'\\'?'",
        "$$?$$",
        "$t$ :a $$ $t$",
        "(1)",
        "'é'",
    ];
    let mut random = Random(42);
    for _ in 0..20_000 {
        let (mut source, mut expected, mut count) = (String::new(), String::new(), 0);
        for _ in 0..random.below(12) {
            if random.below(3) == 0 {
                count += 1;
                source.push_str("? ");
                expected.push_str(&format!("${count} "));
            } else {
                let piece = random.pick(&opaque);
                source.push_str(piece);
                source.push(' ');
                expected.push_str(piece);
                expected.push(' ');
            }
        }
        let parsed = ParsedSql::parse(Dialect::Postgres, &source).unwrap();
        assert_eq!(&*parsed.sql, expected, "{source}");
        assert_eq!(parsed.parameter_count(), count);
    }
}

#[test]
fn sqlite_itself_counts_the_same_parameters() {
    let pieces = [
        "?",
        "?",
        "'?'",
        "'it''s ? '",
        "\"x\"",
        "[x]",
        "`x`",
        "1 /* ? /* */",
        "2 -- ?\n",
        "'é?'",
        "x'00'",
        "\"x\"",
    ];
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    connection.execute_batch("CREATE TABLE t (x)").unwrap();
    let mut random = Random(7);
    for _ in 0..3_000 {
        let columns: Vec<&str> = (0..=random.below(6))
            .map(|_| random.pick(&pieces))
            .collect();
        let source = format!("SELECT {} FROM t", columns.join(", "));
        let parsed = ParsedSql::parse(Dialect::Sqlite, &source).unwrap();
        let statement = connection.prepare(&parsed.sql).unwrap();
        assert_eq!(
            statement.parameter_count(),
            parsed.parameter_count(),
            "{source}"
        );
    }
}
