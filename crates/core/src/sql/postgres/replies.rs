//! Handlers of the server's messages, one for each kind of request.

use std::sync::Arc;

use postgres_protocol::message::backend as tag;

use super::decode::RowShape;
use super::failure::ServerFailure;
use super::text::Malformed;
use super::types::{Oid, Type};
use super::wire::Reader;
use crate::sql::{ResultSet, Value};

/// Handles messages one by one.
pub(super) trait Replies {
    /// Handles messages except errors and asynchronous ones. Returns true after the last message of the answer.
    fn message(&mut self, tag: u8, body: &[u8]) -> Result<bool, Malformed>;

    /// Handles an error after which the connection still works. Returns true when it ends the answer.
    fn failed(&mut self, failure: ServerFailure) -> bool;

    /// The awaited part of the answer, for error messages.
    fn awaited(&self) -> &'static str;

    /// Whether a `COPY` may begin.
    fn copies(&self) -> bool {
        false
    }

    /// Handles a notification. Returns true to stop reading for now.
    fn notified(&mut self, _body: &[u8]) -> Result<bool, Malformed> {
        Ok(false)
    }

    /// Whether the session has not begun: every error is fatal then, and its code is the reason of the refusal.
    fn is_log_in(&self) -> bool {
        false
    }
}

/// Waits for `ReadyForQuery` and ignores other messages.
pub(super) struct Drain {
    /// The number of outstanding ones.
    pub(super) ready: usize,
}

impl Replies for Drain {
    fn message(&mut self, tag: u8, _: &[u8]) -> Result<bool, Malformed> {
        self.ready -= usize::from(tag == tag::READY_FOR_QUERY_TAG);
        Ok(self.ready == 0)
    }

    fn failed(&mut self, _: ServerFailure) -> bool {
        false
    }

    fn awaited(&self) -> &'static str {
        "ReadyForQuery"
    }

    fn copies(&self) -> bool {
        true
    }
}

/// One simple query whose results are ignored.
#[derive(Default)]
pub(super) struct SimpleQuery {
    pub(super) failure: Option<ServerFailure>,
}

impl Replies for SimpleQuery {
    fn message(&mut self, tag: u8, _: &[u8]) -> Result<bool, Malformed> {
        Ok(tag == tag::READY_FOR_QUERY_TAG)
    }

    fn failed(&mut self, failure: ServerFailure) -> bool {
        self.failure = Some(failure);
        false
    }

    fn awaited(&self) -> &'static str {
        "the end of a simple query"
    }
}

/// No message is expected.
pub(super) struct ExpectNothing;

impl Replies for ExpectNothing {
    fn message(&mut self, _: u8, _: &[u8]) -> Result<bool, Malformed> {
        Err(Malformed)
    }

    fn failed(&mut self, _: ServerFailure) -> bool {
        true
    }

    fn awaited(&self) -> &'static str {
        "nothing"
    }
}

/// The answers to `Parse` and `Describe` of several statements.
#[derive(Default)]
pub(super) struct Descriptions {
    pub(super) done: Vec<Description>,
    parameters: Vec<Oid>,
    pub(super) failure: Option<ServerFailure>,
}

pub(super) struct Description {
    pub(super) parameters: Vec<Oid>,
    pub(super) columns: Vec<(String, Oid)>,
}

impl Description {
    /// The types of the parameters and columns.
    pub(super) fn oids(&self) -> impl Iterator<Item = Oid> {
        let columns = self.columns.iter().map(|(_, oid)| *oid);
        self.parameters.iter().copied().chain(columns)
    }
}

impl Descriptions {
    fn finish(&mut self, columns: Vec<(String, Oid)>) {
        let parameters = std::mem::take(&mut self.parameters);
        self.done.push(Description {
            parameters,
            columns,
        });
    }
}

impl Replies for Descriptions {
    fn message(&mut self, tag: u8, body: &[u8]) -> Result<bool, Malformed> {
        match tag {
            tag::PARSE_COMPLETE_TAG | tag::CLOSE_COMPLETE_TAG => {}
            tag::PARAMETER_DESCRIPTION_TAG => self.parameters = read_parameters(body)?,
            tag::ROW_DESCRIPTION_TAG => self.finish(read_columns(body)?),
            tag::NO_DATA_TAG => self.finish(vec![]),
            tag::READY_FOR_QUERY_TAG => return Ok(true),
            _ => return Err(Malformed),
        }
        Ok(false)
    }

    fn failed(&mut self, failure: ServerFailure) -> bool {
        self.failure = Some(failure);
        false
    }

    fn awaited(&self) -> &'static str {
        "the descriptions of prepared statements"
    }
}

/// The answers to a batch, or to its part up to the first error.
pub(super) struct Results {
    /// The columns of each step; filled in if the batch describes its statements.
    shapes: Vec<RowShape>,
    pub(super) done: Vec<Completed>,
    rows: Vec<Vec<Value>>,
    pub(super) failure: Option<ServerFailure>,
}

pub(super) struct Completed {
    pub(super) result: ResultSet,
    /// The server answered `COMMIT` with `ROLLBACK`.
    pub(super) rolled_back: bool,
}

impl Results {
    pub(super) fn new(shapes: Vec<RowShape>) -> Self {
        Self {
            done: Vec::with_capacity(shapes.len()),
            shapes,
            rows: Vec::new(),
            failure: None,
        }
    }

    fn complete(&mut self, command: &[u8]) -> Result<(), Malformed> {
        let shape = self.shapes.get(self.done.len()).ok_or(Malformed)?;
        self.done.push(Completed {
            result: ResultSet {
                columns: Arc::clone(&shape.columns),
                rows: std::mem::take(&mut self.rows),
                affected: affected(command),
                last_insert_id: None,
                further: Vec::new(),
            },
            rolled_back: command == b"ROLLBACK\0",
        });
        Ok(())
    }
}

impl Replies for Results {
    fn message(&mut self, tag: u8, body: &[u8]) -> Result<bool, Malformed> {
        match tag {
            tag::DATA_ROW_TAG => {
                let shape = self.shapes.get(self.done.len()).ok_or(Malformed)?;
                self.rows.push(shape.decode(body)?);
            }
            tag::COMMAND_COMPLETE_TAG => self.complete(read_command(body)?)?,
            tag::EMPTY_QUERY_RESPONSE_TAG => self.complete(b"")?,
            tag::ROW_DESCRIPTION_TAG => {
                let at = self.done.len();
                *self.shapes.get_mut(at).ok_or(Malformed)? = read_text_shape(body)?;
            }
            tag::BIND_COMPLETE_TAG
            | tag::PARSE_COMPLETE_TAG
            | tag::CLOSE_COMPLETE_TAG
            | tag::NO_DATA_TAG => {}
            tag::READY_FOR_QUERY_TAG => return Ok(true),
            _ => return Err(Malformed),
        }
        Ok(false)
    }

    fn failed(&mut self, failure: ServerFailure) -> bool {
        self.failure = Some(failure);
        self.rows.clear();
        false
    }

    fn awaited(&self) -> &'static str {
        match self.done.len() < self.shapes.len() {
            true if self.failure.is_none() => "the results of a batch",
            _ => "the end of a batch",
        }
    }
}

/// The rows of one `Execute` with a limit.
pub(super) struct Chunk {
    pub(super) shape: RowShape,
    pub(super) rows: Vec<Vec<Value>>,
    /// The portal has no more rows.
    pub(super) last: bool,
    /// The portal is open.
    is_bound: bool,
    pub(super) failure: Option<ServerFailure>,
}

impl Chunk {
    /// Opens a portal and reads its first rows.
    pub(super) fn first(shape: RowShape, size: usize) -> Self {
        Self {
            shape,
            rows: Vec::with_capacity(size.min(1_024)),
            last: false,
            is_bound: false,
            failure: None,
        }
    }

    /// Reads the next rows of an open portal.
    pub(super) fn next(shape: RowShape, size: usize) -> Self {
        Self {
            is_bound: true,
            ..Self::first(shape, size)
        }
    }
}

impl Replies for Chunk {
    fn message(&mut self, tag: u8, body: &[u8]) -> Result<bool, Malformed> {
        match tag {
            tag::DATA_ROW_TAG if self.is_bound => self.rows.push(self.shape.decode(body)?),
            tag::ROW_DESCRIPTION_TAG => self.shape = read_text_shape(body)?,
            // The requested number of rows, which is at least one.
            tag::PORTAL_SUSPENDED_TAG if !self.rows.is_empty() => return Ok(true),
            tag::COMMAND_COMPLETE_TAG if self.is_bound => {
                read_command(body)?;
                self.last = true;
                return Ok(true);
            }
            tag::EMPTY_QUERY_RESPONSE_TAG if self.is_bound => {
                self.last = true;
                return Ok(true);
            }
            tag::BIND_COMPLETE_TAG => self.is_bound = true,
            tag::PARSE_COMPLETE_TAG | tag::CLOSE_COMPLETE_TAG | tag::NO_DATA_TAG => {}
            _ => return Err(Malformed),
        }
        Ok(false)
    }

    fn failed(&mut self, failure: ServerFailure) -> bool {
        self.failure = Some(failure);
        true
    }

    fn awaited(&self) -> &'static str {
        "the next rows of a cursor"
    }
}

fn read_parameters(body: &[u8]) -> Result<Vec<Oid>, Malformed> {
    let mut reader = Reader::new(body);
    (0..reader.u16()?).map(|_| reader.u32()).collect()
}

fn read_columns(body: &[u8]) -> Result<Vec<(String, Oid)>, Malformed> {
    let mut reader = Reader::new(body);
    (0..reader.u16()?)
        .map(|_| read_column(&mut reader))
        .collect()
}

fn read_column(reader: &mut Reader<'_>) -> Result<(String, Oid), Malformed> {
    let name = reader.text()?;
    let _table = reader.take::<6>()?;
    let oid = reader.u32()?;
    let _size_modifier_format = reader.take::<8>()?;
    Ok((name, oid))
}

/// The columns of a statement that was not prepared: all are text.
fn read_text_shape(body: &[u8]) -> Result<RowShape, Malformed> {
    let columns = read_columns(body)?
        .into_iter()
        .map(|(name, oid)| {
            (
                name,
                Type::built_in(oid).unwrap_or_else(|| Type::unknown(oid)),
            )
        })
        .collect();
    Ok(RowShape::new(columns, false))
}

/// The text of `CommandComplete`, with its trailing zero.
pub(super) fn read_command(body: &[u8]) -> Result<&[u8], Malformed> {
    match body {
        [_, .., 0] => Ok(body),
        _ => Err(Malformed),
    }
}

/// `INSERT 0 5` and `SELECT 3` end with their count; `CREATE TABLE` has none.
pub(super) fn affected(command: &[u8]) -> u64 {
    let text = std::str::from_utf8(command).unwrap_or_default();
    let last = text.trim_end_matches('\0').rsplit(' ').next();
    last.and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_the_last_word_of_the_command() {
        assert_eq!(affected(b"INSERT 0 5\0"), 5);
        assert_eq!(affected(b"SELECT 3\0"), 3);
        assert_eq!(affected(b"CREATE TABLE\0"), 0);
        assert_eq!(affected(b""), 0);
    }

    #[test]
    fn more_answers_than_questions_are_refused() {
        let mut results = Results::new(vec![RowShape::default()]);
        assert_eq!(
            results.message(tag::COMMAND_COMPLETE_TAG, b"BEGIN\0"),
            Ok(false)
        );
        assert_eq!(
            results.message(tag::COMMAND_COMPLETE_TAG, b"BEGIN\0"),
            Err(Malformed)
        );
        assert_eq!(results.message(tag::DATA_ROW_TAG, &[0, 0]), Err(Malformed));
        assert_eq!(results.message(b'?', b""), Err(Malformed));
    }

    #[test]
    fn cut_descriptions_are_refused() {
        let body = [&[0, 1][..], b"id\0", &[0; 6], &[0, 0, 0, 23], &[0; 8]].concat();
        assert_eq!(read_columns(&body), Ok(vec![("id".to_owned(), 23)]));
        for end in 0..body.len() {
            assert_eq!(read_columns(&body[..end]), Err(Malformed));
        }
        assert_eq!(read_parameters(&[0, 1, 0]), Err(Malformed));
    }
}
