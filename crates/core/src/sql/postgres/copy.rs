//! `COPY … FROM STDIN` and `COPY … TO STDOUT`.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use bytes::{BufMut, Bytes, BytesMut};
use postgres_protocol::message::backend as tag;
use postgres_protocol::message::frontend;
use tokio::sync::mpsc;

use super::batch::is_copy;
use super::connection::Connection;
use super::encode::{self, Encoded};
use super::extended_query;
use super::failure::ServerFailure;
use super::replies::{Replies, affected, read_command};
use super::text::Malformed;
use crate::sql::copy::{CopyChunk, CopyData};
use crate::sql::{Error, Statement, Value};

/// Buffered bytes beyond which no more data is read from the channel.
const SEND_BUFFER_BYTES: usize = 256 * 1024;
/// Maximum data of one message to the server.
const COPY_DATA_BYTES: usize = 1024 * 1024;
/// Approximate length of a chunk of received data.
const CHUNK_BYTES: usize = 64 * 1024;

impl Connection {
    /// Runs a `COPY` and returns the number of rows. The outer error is the connection's, the inner one the statement's.
    ///
    /// Dropping the future leaves the connection in the middle of the answer; the pool cleans it.
    pub(super) async fn copy(
        &mut self,
        statement: &Statement,
        data: CopyData,
    ) -> Result<Result<u64, Error>, Error> {
        if !is_copy(&statement.sql) {
            return Ok(Err(no_copy(statement)));
        }
        if !statement.params.is_empty() {
            let message = "COPY takes no parameters; write them into the statement";
            return Ok(Err(Error::parameter(&statement.source, message)));
        }
        let mut request = BytesMut::new();
        if let Err(error) = write_request(&statement.sql, &mut request) {
            return Ok(Err(error.in_words_of(statement)));
        }
        self.close_evicted();
        self.link.out.extend_from_slice(&request);
        self.push_flush();
        let mut answer = Answer::default();
        self.exchange(&mut answer).await?;
        let copied = match (data, answer.direction) {
            (CopyData::In(chunks), Some(Direction::In)) => self.feed(chunks, &mut answer).await?,
            (CopyData::Out(chunks), Some(Direction::Out)) => {
                self.hand_over(chunks, &mut answer).await?
            }
            (_, Some(_)) => {
                self.drain().await?;
                Err(wrong_way(statement))
            }
            (_, None) if answer.failure.is_some() => Ok(()),
            (_, None) => {
                self.drain().await?;
                Err(no_copy(statement))
            }
        };
        if let Some(failure) = answer.failure {
            self.drain().await?;
            return Ok(Err(failure.into_error(&statement.source)));
        }
        Ok(copied.map(|()| answer.rows))
    }

    /// Sends the data as it is produced. Any message of the server in the meantime is a refusal.
    async fn feed(
        &mut self,
        mut chunks: mpsc::Receiver<CopyChunk>,
        answer: &mut Answer,
    ) -> Result<Result<(), Error>, Error> {
        let mut ended = false;
        let fed = poll_fn(|cx| {
            loop {
                match self.read_messages(answer) {
                    Ok(true) => return Poll::Ready(Ok(Ok(()))),
                    Ok(false) => {}
                    Err(error) => return Poll::Ready(Err(error)),
                }
                while !ended && self.link.out.len() < SEND_BUFFER_BYTES {
                    match chunks.poll_recv(cx) {
                        Poll::Ready(Some(CopyChunk::Data(chunk))) => {
                            push_data(&chunk, &mut self.link.out)
                        }
                        Poll::Ready(Some(CopyChunk::End)) => {
                            ended = true;
                            self.copying = false;
                            frontend::copy_done(&mut self.link.out);
                            self.push_sync();
                        }
                        Poll::Ready(None) => return Poll::Ready(Ok(Err(abandoned()))),
                        Poll::Pending => break,
                    }
                }
                let full = self.link.out.len() >= SEND_BUFFER_BYTES;
                match self.link.poll_transfer(cx, 0) {
                    Poll::Ready(Ok(_)) => {}
                    Poll::Ready(Err(error)) => {
                        let problem =
                            format!("{error} while the client waited for {}", answer.awaited());
                        return Poll::Ready(Err(self.give_up(&problem)));
                    }
                    // Sending has made room in the buffer.
                    Poll::Pending if full && self.link.out.len() < SEND_BUFFER_BYTES => {}
                    Poll::Pending => return Poll::Pending,
                }
            }
        });
        fed.await
    }

    async fn hand_over(
        &mut self,
        chunks: mpsc::Sender<Bytes>,
        answer: &mut Answer,
    ) -> Result<Result<(), Error>, Error> {
        self.push_sync();
        loop {
            tokio::select! {
                biased;
                () = chunks.closed() => return Ok(Err(abandoned())),
                exchanged = self.exchange(answer) => exchanged?,
            }
            let chunk = answer.data.split().freeze();
            if !chunk.is_empty() && chunks.send(chunk).await.is_err() {
                return Ok(Err(abandoned()));
            }
            if answer.ready || answer.failure.is_some() {
                return Ok(Ok(()));
            }
        }
    }
}

fn write_request(sql: &str, out: &mut BytesMut) -> Result<(), Error> {
    let unsendable = |error: io::Error| extended_query::unsendable(sql, &error.to_string());
    frontend::parse("", sql, [], out).map_err(unsendable)?;
    extended_query::bind(sql, "", &[], [].into_iter(), out)?;
    frontend::execute("", 0, out).map_err(unsendable)
}

/// One row in the text format of `COPY` (PostgreSQL documentation, "COPY", "Text Format").
///
/// # Errors
/// The number of the value, counted from 1, and the reason.
pub fn write_copy_row(values: &[Value], out: &mut BytesMut) -> Result<(), String> {
    let start = out.len();
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            out.put_u8(b'\t');
        }
        match encode::encode_untyped(value) {
            Ok(Encoded::Null) => out.put_slice(b"\\N"),
            Ok(Encoded::Text(text)) => write_escaped(text.as_bytes(), out),
            Ok(Encoded::Written(text)) => write_escaped(text.as_bytes(), out),
            Ok(_) => unreachable!("without a type everything is text"),
            Err(mismatch) => {
                out.truncate(start);
                return Err(format!("value {} {mismatch}", at + 1));
            }
        }
    }
    out.put_u8(b'\n');
    Ok(())
}

fn write_escaped(text: &[u8], out: &mut BytesMut) {
    out.reserve(text.len());
    let mut rest = text;
    while let Some(at) = rest
        .iter()
        .position(|byte| matches!(byte, b'\\' | b'\t' | b'\n' | b'\r'))
    {
        out.put_slice(&rest[..at]);
        out.put_slice(match rest[at] {
            b'\t' => b"\\t",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            _ => b"\\\\",
        });
        rest = &rest[at + 1..];
    }
    out.put_slice(rest);
}

fn push_data(chunk: &[u8], out: &mut BytesMut) {
    for part in chunk.chunks(COPY_DATA_BYTES) {
        out.reserve(5 + part.len());
        out.put_u8(b'd');
        out.put_u32(part.len() as u32 + 4);
        out.put_slice(part);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    In,
    Out,
}

/// The server's answer to a `COPY`.
#[derive(Default)]
struct Answer {
    direction: Option<Direction>,
    data: BytesMut,
    rows: u64,
    /// The server has reported the number of rows.
    is_complete: bool,
    ready: bool,
    failure: Option<ServerFailure>,
}

impl Replies for Answer {
    fn message(&mut self, tag: u8, body: &[u8]) -> Result<bool, Malformed> {
        match (tag, self.direction) {
            (tag::COPY_IN_RESPONSE_TAG, None) => self.direction = Some(Direction::In),
            (tag::COPY_OUT_RESPONSE_TAG, None) => self.direction = Some(Direction::Out),
            (tag::COPY_DATA_TAG, Some(Direction::Out)) => {
                self.data.extend_from_slice(body);
                return Ok(self.data.len() >= CHUNK_BYTES);
            }
            (tag::COPY_DONE_TAG, Some(Direction::Out)) => return Ok(false),
            (tag::COMMAND_COMPLETE_TAG, direction) if !self.is_complete => {
                self.rows = affected(read_command(body)?);
                self.is_complete = true;
                // The answer to another statement than COPY ends here, because its `Sync` was not sent.
                return Ok(direction.is_none());
            }
            (tag::READY_FOR_QUERY_TAG, _) if self.is_complete || self.failure.is_some() => {
                self.ready = true;
            }
            // The result of another statement than COPY.
            (tag::EMPTY_QUERY_RESPONSE_TAG, None) => {}
            (
                tag::DATA_ROW_TAG
                | tag::PARSE_COMPLETE_TAG
                | tag::BIND_COMPLETE_TAG
                | tag::CLOSE_COMPLETE_TAG,
                None,
            ) => return Ok(false),
            _ => return Err(Malformed),
        }
        Ok(true)
    }

    fn failed(&mut self, failure: ServerFailure) -> bool {
        self.failure = Some(failure);
        true
    }

    fn awaited(&self) -> &'static str {
        match self.direction {
            None => "the beginning of a COPY",
            Some(_) if self.is_complete => "the end of a COPY",
            Some(Direction::In) => "the outcome of a COPY FROM STDIN",
            Some(Direction::Out) => "the data of a COPY TO STDOUT",
        }
    }

    fn copies(&self) -> bool {
        true
    }
}

fn abandoned() -> Error {
    Error::Usage {
        message: "the COPY was cancelled before its end".to_owned(),
    }
}

fn wrong_way(statement: &Statement) -> Error {
    Error::parameter(
        &statement.source,
        "the direction of this COPY is wrong: copyIn() needs FROM STDIN, copyOut() needs TO STDOUT",
    )
}

fn no_copy(statement: &Statement) -> Error {
    Error::parameter(
        &statement.source,
        "the statement is neither COPY … FROM STDIN nor COPY … TO STDOUT",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[Value]) -> Result<String, String> {
        let mut out = BytesMut::new();
        write_copy_row(values, &mut out)?;
        Ok(String::from_utf8(out.to_vec()).unwrap())
    }

    #[test]
    fn special_characters_of_the_text_format_are_escaped() {
        let text = Value::Text("a\tb\nc\rd\\N\\.".to_owned());
        let row = row(&[
            Value::Null,
            text,
            Value::Int(-7),
            Value::Text(String::new()),
        ])
        .unwrap();
        assert_eq!(row, "\\N\ta\\tb\\nc\\rd\\\\N\\\\.\t-7\t\n");
    }

    #[test]
    fn bytes_lists_and_truth_have_their_text_forms() {
        let list = Value::List(vec![Value::Text("a\"".to_owned()), Value::Null]);
        let row = row(&[Value::Bytes(vec![0, 255]), list, Value::Bool(true)]).unwrap();
        assert_eq!(row, "\\\\x00ff\t{\"a\\\\\"\",NULL}\ttrue\n");
    }

    #[test]
    fn a_value_that_cannot_be_written_is_named_and_not_shown() {
        let error = row(&[Value::Int(1), Value::Text("secret\0".to_owned())]).unwrap_err();
        assert!(error.starts_with("value 2 "), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn long_data_is_cut_into_messages() {
        let mut out = BytesMut::new();
        push_data(&vec![7; COPY_DATA_BYTES + 3], &mut out);
        assert_eq!(out.len(), COPY_DATA_BYTES + 3 + 2 * 5);
        assert_eq!(&out[COPY_DATA_BYTES + 5..], [b'd', 0, 0, 0, 7, 7, 7, 7]);
    }
}
