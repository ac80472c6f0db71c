//! `?` and `:name` placeholders, rewritten to what the driver understands.

use std::sync::Arc;

use super::cache::Cache;
use super::{Error, Value};

/// How a driver writes its positional parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `$1`; dollar-quoted strings, `E''` strings, nested comments, `::` casts.
    Postgres,
    /// `?1`; backtick and bracket identifiers.
    Sqlite,
    /// `?`; backtick identifiers, backslashes that escape, `#` comments, `--` comments only before white space.
    Mysql,
}

/// Parameters as the user gave them.
#[derive(Debug, Clone, PartialEq)]
pub enum Params {
    Positional(Vec<Value>),
    /// A name may be written with or without its colon.
    Named(Vec<(String, Value)>),
}

/// SQL text with its placeholders located and rewritten. Parse once, bind often.
///
/// A `?` or `:name` inside a string, a quoted identifier or a comment is left alone. `??` stands for one literal `?`
/// (PostgreSQL's `?`, `?|` and `?&` operators), as in PDO. A name used twice is one parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedSql {
    /// The rewritten text.
    pub sql: Arc<str>,
    /// The text as it was.
    pub source: Arc<str>,
    placeholders: Placeholders,
    /// Where a parameter has no number of its own: which name stands at each of the places.
    places: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Placeholders {
    None,
    Positional(usize),
    /// Names in order of their number; a name used twice has one number.
    Named(Vec<String>),
}

impl ParsedSql {
    /// Locates the placeholders.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the text mixes `?` with `:name`, numbers its placeholders itself (`?1`, or `$1` next
    /// to `?`), or has more of them than the database accepts (65,535 for PostgreSQL and MySQL, 32,766 for SQLite).
    pub fn parse(dialect: Dialect, sql: &str) -> Result<Self, Error> {
        let mut rewriter = Rewriter::new(dialect, sql);
        rewriter
            .run()
            .map_err(|message| Error::parameter(sql, message))?;
        let source: Arc<str> = sql.into();
        let rewritten = match rewriter.output {
            output if rewriter.copied == 0 && output.is_empty() => Arc::clone(&source),
            output => output.into(),
        };
        Ok(Self {
            sql: rewritten,
            source,
            placeholders: rewriter.placeholders,
            places: rewriter.places,
        })
    }

    /// How many parameters the rewritten text takes.
    pub fn parameter_count(&self) -> usize {
        match &self.placeholders {
            Placeholders::None => 0,
            Placeholders::Positional(count) => *count,
            Placeholders::Named(names) => names.len(),
        }
    }

    /// Puts the parameters into the order of the rewritten text. A list stays one parameter.
    ///
    /// # Errors
    /// [`Error::Parameter`] naming what is missing, unknown, given twice, too many or too few.
    pub fn bind(&self, params: Params) -> Result<Vec<Value>, Error> {
        match (&self.placeholders, params) {
            (Placeholders::Named(names), Params::Named(values)) => {
                bind_named(names, values).map(|values| self.place(values))
            }
            (Placeholders::Named(names), Params::Positional(values)) => Err(format!(
                "the statement has named placeholders ({}), but {} positional {} given",
                list(names),
                values.len(),
                parameters_were(values.len())
            )),
            (_, Params::Positional(values)) => self.bind_positional(values),
            (_, Params::Named(values)) if values.is_empty() => self.bind_positional(Vec::new()),
            (_, Params::Named(values)) => Err(self.unexpected_names(&values)),
        }
        .map_err(|message| Error::parameter(&self.source, message))
    }

    /// Repeats the value of a name that stands in several places.
    fn place(&self, values: Vec<Value>) -> Vec<Value> {
        match self.places.iter().copied().eq(0..self.places.len()) {
            true => values,
            false => self.places.iter().map(|at| values[*at].clone()).collect(),
        }
    }

    fn bind_positional(&self, values: Vec<Value>) -> Result<Vec<Value>, String> {
        match (self.parameter_count(), values.len()) {
            (expected, given) if expected == given => Ok(values),
            (0, given) => Err(format!(
                "the statement has no placeholder (? or :name), but {given} {} given",
                parameters_were(given)
            )),
            (expected, given) => Err(format!(
                "the statement has {expected} ? {}, but {given} {} given",
                if expected == 1 {
                    "placeholder"
                } else {
                    "placeholders"
                },
                parameters_were(given)
            )),
        }
    }

    fn unexpected_names(&self, values: &[(String, Value)]) -> String {
        let names: Vec<&str> = values.iter().map(|(name, _)| bare(name)).collect();
        match self.placeholders {
            Placeholders::None => format!(
                "the statement has no placeholder, but parameters were given for {}",
                list(&names)
            ),
            _ => format!(
                "the statement has ? placeholders, but named parameters were given ({})",
                list(&names)
            ),
        }
    }
}

fn bind_named(names: &[String], values: Vec<(String, Value)>) -> Result<Vec<Value>, String> {
    let mut bound: Vec<Option<Value>> = vec![None; names.len()];
    for (name, value) in values {
        let name = bare(&name);
        let position = names
            .iter()
            .position(|known| known == name)
            .ok_or_else(|| {
                format!(
                    "parameter :{name} is not in the statement, which has {}",
                    list(names)
                )
            })?;
        if bound[position].replace(value).is_some() {
            return Err(format!("parameter :{name} was given twice"));
        }
    }
    let missing: Vec<&String> = names
        .iter()
        .zip(&bound)
        .filter(|(_, value)| value.is_none())
        .map(|(name, _)| name)
        .collect();
    if !missing.is_empty() {
        return Err(format!("no value was given for {}", list(&missing)));
    }
    Ok(bound.into_iter().flatten().collect())
}

fn bare(name: &str) -> &str {
    name.strip_prefix(':').unwrap_or(name)
}

fn list(names: &[impl AsRef<str>]) -> String {
    names
        .iter()
        .map(|name| format!(":{}", name.as_ref()))
        .collect::<Vec<_>>()
        .join(", ")
}

fn parameters_were(count: usize) -> &'static str {
    if count == 1 {
        "parameter was"
    } else {
        "parameters were"
    }
}

/// Parsed statements by their text; bounded, the least recently used half is forgotten when it is full.
#[derive(Debug)]
pub struct ParseCache {
    dialect: Dialect,
    parsed: Cache<ParsedSql>,
}

impl ParseCache {
    /// Remembers at least the `capacity` statements used last, and never more than twice as many.
    pub fn new(dialect: Dialect, capacity: usize) -> Self {
        Self {
            dialect,
            parsed: Cache::new(capacity),
        }
    }

    /// # Errors
    /// Those of [`ParsedSql::parse`]; a text that fails is not remembered.
    pub fn parse(&mut self, sql: &str) -> Result<&ParsedSql, Error> {
        let dialect = self.dialect;
        let parsed = self.parsed.find_or_insert(sql, || {
            let parsed = ParsedSql::parse(dialect, sql)?;
            Ok::<_, Error>((Arc::clone(&parsed.source), parsed))
        })?;
        Ok(parsed)
    }
}

/// One pass over the text. Works on bytes: every byte it decides on is ASCII, which never occurs inside a UTF-8
/// sequence, so that each cut falls on a character boundary.
struct Rewriter<'a> {
    dialect: Dialect,
    sql: &'a str,
    bytes: &'a [u8],
    /// Next byte to look at.
    at: usize,
    /// Everything before this byte is in `output`.
    copied: usize,
    output: String,
    brackets: usize,
    has_native_placeholder: bool,
    placeholders: Placeholders,
    places: Vec<usize>,
}

impl<'a> Rewriter<'a> {
    fn new(dialect: Dialect, sql: &'a str) -> Self {
        Self {
            dialect,
            sql,
            bytes: sql.as_bytes(),
            at: 0,
            copied: 0,
            output: String::new(),
            brackets: 0,
            has_native_placeholder: false,
            placeholders: Placeholders::None,
            places: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<(), String> {
        while let Some(&byte) = self.bytes.get(self.at) {
            self.token(byte)?;
        }
        if self.has_native_placeholder && self.placeholders != Placeholders::None {
            return Err("the statement mixes $1 with ? or :name placeholders; use one kind".into());
        }
        if self.copied > 0 || !self.output.is_empty() {
            self.output.push_str(&self.sql[self.copied..]);
        }
        Ok(())
    }

    fn token(&mut self, byte: u8) -> Result<(), String> {
        let postgres = self.dialect == Dialect::Postgres;
        let mysql = self.dialect == Dialect::Mysql;
        match byte {
            b'\'' => self.skip_quoted(b'\'', mysql),
            b'"' => self.skip_quoted(b'"', mysql),
            b'`' if !postgres => self.skip_quoted(b'`', false),
            b'[' if self.dialect == Dialect::Sqlite => self.skip_past(self.at + 1, "]"),
            b'[' => self.bracket(self.brackets + 1),
            b']' => self.bracket(self.brackets.saturating_sub(1)),
            b'#' if mysql => self.skip_past(self.at + 1, "\n"),
            // `5--3` is a subtraction of a negative number.
            b'-' if mysql && self.peek(1) == Some(b'-') && !self.is_space(2) => self.at += 2,
            b'-' if self.peek(1) == Some(b'-') => self.skip_past(self.at + 2, "\n"),
            b'/' if self.peek(1) == Some(b'*') => self.skip_comment(),
            b'$' if postgres => self.dollar(),
            b'?' => return self.question_mark(),
            b':' => return self.colon(),
            _ if is_word(byte) => self.word(),
            _ => self.at += 1,
        }
        Ok(())
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    /// From an opening quote past its closing one; a doubled quote stays inside. Unterminated: to the end.
    fn skip_quoted(&mut self, quote: u8, backslash_escapes: bool) {
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            if backslash_escapes && byte == b'\\' {
                self.at += 1;
            } else if byte == quote {
                if self.peek(0) != Some(quote) {
                    break;
                }
                self.at += 1;
            }
        }
        self.at = self.at.min(self.bytes.len());
    }

    fn skip_past(&mut self, from: usize, end: &str) {
        self.at = find(self.bytes, end.as_bytes(), from)
            .map_or(self.bytes.len(), |start| start + end.len());
    }

    /// White space, a control character or the end.
    fn is_space(&self, ahead: usize) -> bool {
        self.peek(ahead)
            .is_none_or(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control())
    }

    /// PostgreSQL's comments nest, the others' do not. What MySQL finds in `/*! … */` it runs.
    fn skip_comment(&mut self) {
        let rest = &self.bytes[self.at..];
        if self.dialect == Dialect::Mysql && (rest.starts_with(b"/*!") || rest.starts_with(b"/*M!"))
        {
            self.at += 3;
            return;
        }
        if self.dialect != Dialect::Postgres {
            return self.skip_past(self.at + 2, "*/");
        }
        let mut depth = 0;
        while self.at < self.bytes.len() {
            match (self.peek(0), self.peek(1)) {
                (Some(b'/'), Some(b'*')) => depth += 1,
                (Some(b'*'), Some(b'/')) => depth -= 1,
                _ => {
                    self.at += 1;
                    continue;
                }
            }
            self.at += 2;
            if depth == 0 {
                return;
            }
        }
    }

    fn bracket(&mut self, depth: usize) {
        self.brackets = depth;
        self.at += 1;
    }

    /// An identifier, keyword or number; in PostgreSQL `E` right before a quote makes backslashes escape.
    fn word(&mut self) {
        let start = self.at;
        while self
            .peek(0)
            .is_some_and(|byte| is_word(byte) || byte == b'$')
        {
            self.at += 1;
        }
        let escapes = self.at - start == 1 && self.bytes[start].eq_ignore_ascii_case(&b'e');
        if self.dialect == Dialect::Postgres && escapes && self.peek(0) == Some(b'\'') {
            self.skip_quoted(b'\'', true);
        }
    }

    /// `$tag$ … $tag$`, or PostgreSQL's own `$1`.
    fn dollar(&mut self) {
        let start = self.at;
        self.at += 1;
        if self.peek(0).is_some_and(|byte| byte.is_ascii_digit()) {
            self.has_native_placeholder = true;
            return;
        }
        let tag_length = self.bytes[self.at..]
            .iter()
            .take_while(|byte| is_word(**byte))
            .count();
        if self.peek(tag_length) == Some(b'$') {
            let tag = &self.sql[start..=self.at + tag_length];
            self.skip_past(start + tag.len(), tag);
        }
    }

    fn question_mark(&mut self) -> Result<(), String> {
        match self.peek(1) {
            Some(b'?') if self.dialect == Dialect::Mysql => Err(
                "?? stands for an operator that MySQL does not have; separate two placeholders"
                    .into(),
            ),
            Some(b'?') => {
                self.output.push_str(&self.sql[self.copied..=self.at]);
                self.at += 2;
                self.copied = self.at;
                Ok(())
            }
            Some(b'0'..=b'9') => {
                Err("numbered placeholders such as ?1 are not supported; write ? or :name".into())
            }
            _ => {
                let number = self.next_positional()?;
                self.replace(1, number)
            }
        }
    }

    fn colon(&mut self) -> Result<(), String> {
        if matches!(self.peek(1), Some(b':' | b'=')) {
            self.at += 2;
            return Ok(());
        }
        let name_length = self.bytes[self.at + 1..]
            .iter()
            .take_while(|byte| is_word(**byte))
            .count();
        if name_length == 0
            || self.peek(1).is_some_and(|byte| byte.is_ascii_digit())
            || self.is_slice()
        {
            self.at += 1;
            return Ok(());
        }
        let sql = self.sql;
        let number = self.number_of(&sql[self.at + 1..=self.at + name_length])?;
        self.replace(1 + name_length, number)
    }

    /// `array[low:high]`: within brackets, a colon right after an operand separates the bounds of a slice.
    fn is_slice(&self) -> bool {
        let before = self.at.checked_sub(1).map(|index| self.bytes[index]);
        self.brackets > 0
            && before.is_some_and(|byte| is_word(byte) || matches!(byte, b')' | b']' | b'"'))
    }

    fn next_positional(&mut self) -> Result<usize, String> {
        let count = match &mut self.placeholders {
            Placeholders::Named(names) => return Err(mixed(names)),
            Placeholders::Positional(count) => *count + 1,
            Placeholders::None => 1,
        };
        self.placeholders = Placeholders::Positional(count);
        Ok(count)
    }

    fn number_of(&mut self, name: &str) -> Result<usize, String> {
        if self.placeholders == Placeholders::None {
            self.placeholders = Placeholders::Named(Vec::new());
        }
        let Placeholders::Named(names) = &mut self.placeholders else {
            return Err(mixed(&[name]));
        };
        let index = names
            .iter()
            .position(|known| known == name)
            .unwrap_or_else(|| {
                names.push(name.to_owned());
                names.len() - 1
            });
        Ok(index + 1)
    }

    fn replace(&mut self, length: usize, number: usize) -> Result<(), String> {
        let (sign, limit) = match self.dialect {
            Dialect::Postgres => ('$', 65_535),
            Dialect::Sqlite => ('?', 32_766),
            Dialect::Mysql => ('?', 65_535),
        };
        let has_numbers = self.dialect != Dialect::Mysql;
        let count = if has_numbers {
            number
        } else {
            self.places.len() + 1
        };
        if count > limit {
            return Err(format!("the statement has more than {limit} parameters"));
        }
        self.output.push_str(&self.sql[self.copied..self.at]);
        self.output.push(sign);
        if has_numbers {
            self.output.push_str(&number.to_string());
        } else {
            self.places.push(number - 1);
        }
        self.at += length;
        self.copied = self.at;
        if self.peek(0).is_some_and(is_word) {
            // `?AND` is fine, `$1AND` is junk to newer PostgreSQL.
            self.output.push(' ');
        }
        Ok(())
    }
}

fn mixed(names: &[impl AsRef<str>]) -> String {
    format!(
        "the statement mixes ? placeholders with named ones ({}); use one kind",
        list(names)
    )
}

/// Letters, digits, underscore and everything beyond ASCII, which both databases accept in identifiers.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn find(bytes: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    let tail = bytes.get(from..)?;
    tail.windows(needle.len())
        .position(|window| window == needle)
        .map(|offset| from + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_follows_a_skipped_part_is_still_seen() {
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
        assert!(
            message(ParsedSql::parse(Dialect::Postgres, &"?,".repeat(65_536))).contains("65535")
        );
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
            "'", "\"", "`", "[", "]", "$", "$$", "$a$", "$1", "?", "??", ":", "::", ":a", ":é",
            "é", "𝄞", "\\", "E'", "--", "\n", "/*", "*/", "U&'", " ", "a", "1", "\0", ":=",
            "\u{7f}", "(", ")", "?1",
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
}
