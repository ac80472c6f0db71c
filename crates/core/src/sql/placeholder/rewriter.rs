//! Finds the placeholders of one statement and rewrites them for its driver.

use super::dialect::Dialect;
use super::placeholders::{Placeholders, list};

/// Scans the text once, by bytes: every byte that matters is ASCII, which never occurs inside a UTF-8
/// sequence, so that each split is at a character boundary.
pub(super) struct Rewriter<'a> {
    dialect: Dialect,
    sql: &'a str,
    bytes: &'a [u8],
    /// Position of the next byte.
    at: usize,
    /// Everything before this position is in `output`.
    pub(super) copied: usize,
    pub(super) output: String,
    brackets: usize,
    has_native_placeholder: bool,
    pub(super) placeholders: Placeholders,
    pub(super) places: Vec<usize>,
    /// Indexes of the parameters that are the only value of an `IN (…)`, for dialects in which a list cannot be one.
    pub(super) alone_in: Vec<usize>,
}

impl<'a> Rewriter<'a> {
    pub(super) fn new(dialect: Dialect, sql: &'a str) -> Self {
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
            alone_in: Vec::new(),
        }
    }

    pub(super) fn run(&mut self) -> Result<(), String> {
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

    /// Skips a quoted text, in which a doubled quote is a quote. An unterminated one extends to the end.
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

    /// Only PostgreSQL's comments nest. MySQL executes the contents of `/*! … */`.
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

    /// Whether the placeholder is the only value of an `IN (…)`.
    fn is_alone_in(&self, length: usize) -> bool {
        let before = self.sql[..self.at].trim_ascii_end().strip_suffix('(');
        let before = before.map(|before| before.trim_ascii_end().as_bytes());
        let is_in = before
            .and_then(|before| before.split_last_chunk::<2>())
            .is_some_and(|(rest, word)| {
                word.eq_ignore_ascii_case(b"in") && !rest.last().is_some_and(|byte| is_word(*byte))
            });
        is_in
            && self.sql[self.at + length..]
                .trim_ascii_start()
                .starts_with(')')
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
        if self.dialect != Dialect::Postgres && self.is_alone_in(length) {
            self.alone_in.push(number - 1);
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

/// Letters, digits, underscore and all characters beyond ASCII, which all databases accept in identifiers.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn find(bytes: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    let tail = bytes.get(from..)?;
    tail.windows(needle.len())
        .position(|window| window == needle)
        .map(|offset| from + offset)
}
