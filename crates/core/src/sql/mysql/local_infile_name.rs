//! Parses the file name of a `LOAD DATA LOCAL INFILE` as the server does.

/// The file's name as the literal of `LOAD {DATA | XML} [LOW_PRIORITY | CONCURRENT] LOCAL INFILE '…'` says, `None` for
/// every other statement. `backslash_escapes`: the session has not `NO_BACKSLASH_ESCAPES`.
pub(super) fn local_file(sql: &str, backslash_escapes: bool) -> Option<String> {
    let rest = keyword(sql, &["LOAD"])?;
    let rest = keyword(rest, &["DATA", "XML"])?;
    let rest = keyword(rest, &["LOW_PRIORITY", "CONCURRENT"]).unwrap_or(rest);
    let rest = keyword(rest, &["LOCAL"])?;
    let rest = keyword(rest, &["INFILE"])?;
    literal(skip_blanks(rest)?, backslash_escapes)
}

/// The text after one of the words.
fn keyword<'a>(sql: &'a str, words: &[&str]) -> Option<&'a str> {
    let sql = skip_blanks(sql)?;
    let end = sql
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(sql.len());
    let (word, rest) = sql.split_at(end);
    words
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
        .then_some(rest)
}

/// Skips white space and comments. `None` at one that MySQL executes (`/*! … */`), and at an unterminated one.
fn skip_blanks(mut sql: &str) -> Option<&str> {
    loop {
        sql = sql.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
        let is_dashes = sql
            .strip_prefix("--")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_whitespace()));
        sql = if sql.starts_with('#') || is_dashes {
            sql.split_once('\n')?.1
        } else if sql.starts_with("/*!") || sql.starts_with("/*M!") {
            return None;
        } else if let Some(comment) = sql.strip_prefix("/*") {
            comment.split_once("*/")?.1
        } else {
            return Some(sql);
        };
    }
}

/// The value of the string literal that `sql` begins with.
fn literal(sql: &str, backslash_escapes: bool) -> Option<String> {
    let mut rest = sql.chars().peekable();
    let quote = rest.next().filter(|quote| matches!(quote, '\'' | '"'))?;
    let mut value = String::new();
    loop {
        match rest.next()? {
            '\\' if backslash_escapes => value.push_str(&unescape(rest.next()?)),
            other if other != quote => value.push(other),
            _ if rest.next_if_eq(&quote).is_some() => value.push(quote),
            _ => return Some(value),
        }
    }
}

/// MySQL's reference manual, "String Literals", special character escape sequences.
fn unescape(escaped: char) -> String {
    match escaped {
        '0' => "\0".to_owned(),
        'b' => "\x08".to_owned(),
        'n' => "\n".to_owned(),
        'r' => "\r".to_owned(),
        't' => "\t".to_owned(),
        'Z' => "\x1a".to_owned(),
        // These keep their backslash, for patterns.
        '%' | '_' => format!("\\{escaped}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_the_literal_of_the_statement() {
        for (sql, file) in [
            (
                "LOAD DATA LOCAL INFILE '/tmp/a.csv' INTO TABLE t",
                "/tmp/a.csv",
            ),
            (
                "load xml concurrent local infile \"b.xml\" into table t",
                "b.xml",
            ),
            (
                "/* /etc/passwd */ LOAD DATA -- '/etc/shadow'\n LOCAL # x\n INFILE'it''s\\t\\'.csv'",
                "it's\t'.csv",
            ),
            ("LOAD DATA LOCAL INFILE '\\%\\q\\\\' INTO TABLE t", "\\%q\\"),
        ] {
            assert_eq!(local_file(sql, true).as_deref(), Some(file), "{sql}");
        }
        let windows = "LOAD DATA LOCAL INFILE 'C:\\new' INTO TABLE t";
        assert_eq!(local_file(windows, false).as_deref(), Some("C:\\new"));
    }

    #[test]
    fn no_other_text_names_a_file() {
        for sql in [
            "SELECT '/etc/passwd'",
            "INSERT INTO t VALUES ('LOAD DATA LOCAL INFILE ''/etc/passwd''')",
            "LOAD DATA INFILE '/etc/passwd' INTO TABLE t",
            "LOAD DATA LOCAL INFILE /etc/passwd",
            "LOAD DATA LOCAL INFILE 'open",
            "LOAD DATA LOCAL INFILE ?",
            "/*! LOAD DATA LOCAL INFILE '/etc/passwd' */",
            "LOAD DATA LOCAL INFILE /* open",
            "LOADDATA LOCAL INFILE 'x'",
            "",
        ] {
            assert_eq!(local_file(sql, true), None, "{sql}");
        }
    }
}
