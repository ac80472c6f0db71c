//! Assembles the answer to a command from packets.

use std::sync::Arc;

use super::decode::{Definition, RowShape};
use super::failure::ServerFailure;
use super::wire::{Malformed, Reader};
use crate::sql::{ResultSet, Value};

pub(super) const IN_TRANSACTION: u16 = 0x0001;
pub(super) const AUTOCOMMIT: u16 = 0x0002;
pub(super) const NO_BACKSLASH_ESCAPES: u16 = 0x0200;
const MORE_RESULTS: u16 = 0x0008;
const CURSOR_EXISTS: u16 = 0x0040;
const LAST_ROW_SENT: u16 = 0x0080;
const SESSION_CHANGED: u16 = 0x4000;

const OK: u8 = 0x00;
const INFILE: u8 = 0xfb;
const EOF: u8 = 0xfe;
const ERR: u8 = 0xff;

/// The kind of a request, which determines how its answer is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Command {
    /// A statement of the client itself, whose effect on the session is known.
    Control,
    /// The same, without a waiter. It succeeds on every working connection.
    Silent,
    Prepare,
    /// A statement in the text protocol.
    Query,
    /// A prepared statement.
    Execute,
    /// The next rows of a cursor, whose columns are known.
    Fetch,
}

// Messages for an answer of the wrong kind.
pub(super) const UNEXPECTED_DESCRIPTION: &str =
    "it described a prepared statement while the client waited for a result";
pub(super) const UNEXPECTED_RESULT: &str =
    "it sent a result while the client waited for the description of a prepared statement";

impl Command {
    fn name(&self) -> &'static str {
        match self {
            Self::Control | Self::Silent => "a control statement",
            Self::Prepare => "COM_STMT_PREPARE",
            Self::Query => "COM_QUERY",
            Self::Execute => "COM_STMT_EXECUTE",
            Self::Fetch => "COM_STMT_FETCH",
        }
    }
}

#[derive(Debug)]
pub(super) enum Answer {
    Prepared { id: u32, parameters: u16 },
    Done(ResultSet),
    Failed(ServerFailure),
}

/// The state after a packet.
pub(super) enum Step {
    More,
    Complete(Answer),
    /// The server requests a file of this machine.
    File(Vec<u8>),
}

/// The capabilities that determine the format of the packets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Capabilities {
    /// `CLIENT_DEPRECATE_EOF`: no packet between definitions and rows, and an OK packet after the rows.
    pub(super) without_eof: bool,
    /// `CLIENT_SESSION_TRACK`
    pub(super) tracks_session: bool,
    /// `MARIADB_CLIENT_EXTENDED_METADATA`
    pub(super) extended: bool,
}

/// The answer that is being received.
#[derive(Default)]
pub(super) struct Reply {
    capabilities: Capabilities,
    phase: Phase,
    definitions: Vec<Definition>,
    pub(super) shape: RowShape,
    /// Rows of the current result that are not yet taken.
    pub(super) rows: Vec<Vec<Value>>,
    /// The number of received rows.
    count: u64,
    done: Vec<ResultSet>,
    /// The latest status flags of the server.
    pub(super) status: u16,
    /// The server reported a change in the session.
    pub(super) session_changed: bool,
}

#[derive(Default, Clone, Copy)]
enum Phase {
    #[default]
    Start,
    /// Definitions of a prepared statement, which are not needed.
    Skipping {
        packets: usize,
        id: u32,
        parameters: u16,
    },
    Definitions {
        left: u64,
    },
    DefinitionsEnd,
    Rows,
}

impl Reply {
    pub(super) fn new(capabilities: Capabilities, status: u16) -> Self {
        Self {
            capabilities,
            status,
            ..Self::default()
        }
    }

    /// Whether no packet of the next answer has arrived.
    pub(super) fn is_fresh(&self) -> bool {
        matches!(self.phase, Phase::Start) && self.done.is_empty()
    }

    /// Whether the server keeps the rows of the statement it has just answered.
    pub(super) fn has_cursor(&self) -> bool {
        self.status & CURSOR_EXISTS != 0
    }

    pub(super) fn is_last_row_sent(&self) -> bool {
        self.status & LAST_ROW_SENT != 0
    }

    /// The awaited part of the answer, for error messages.
    pub(super) fn awaited(&self, command: &Command) -> String {
        let part = match self.phase {
            Phase::Start if self.done.is_empty() => "the answer",
            Phase::Start => "a further result in the answer",
            Phase::Skipping { .. } => "the parameters and columns in the answer",
            Phase::Definitions { .. } => "a column definition in the answer",
            Phase::DefinitionsEnd => "the end of the column definitions in the answer",
            Phase::Rows => "a row or the end of the rows in the answer",
        };
        format!("{part} to {}", command.name())
    }

    pub(super) fn packet(&mut self, command: &Command, packet: &[u8]) -> Result<Step, Malformed> {
        if packet.first() == Some(&ERR) && !matches!(self.phase, Phase::Definitions { .. }) {
            let failure = ServerFailure::read(&packet[1..])?;
            return Ok(self.complete(Answer::Failed(failure)));
        }
        match self.phase {
            Phase::Start => match command {
                Command::Prepare => self.prepared(packet),
                Command::Fetch => {
                    self.phase = Phase::Rows;
                    self.row(command, packet)
                }
                _ => self.first(command, packet),
            },
            Phase::Skipping {
                packets: 1,
                id,
                parameters,
            } => Ok(self.complete(Answer::Prepared { id, parameters })),
            Phase::Skipping {
                packets,
                id,
                parameters,
            } => {
                self.phase = Phase::Skipping {
                    packets: packets - 1,
                    id,
                    parameters,
                };
                Ok(Step::More)
            }
            Phase::Definitions { left } => {
                let definition = Definition::read(packet, self.capabilities.extended)?;
                self.definitions.push(definition);
                self.phase = match (left, self.capabilities.without_eof) {
                    (1, without_eof) => {
                        self.shape = RowShape::new(std::mem::take(&mut self.definitions));
                        if without_eof {
                            Phase::Rows
                        } else {
                            Phase::DefinitionsEnd
                        }
                    }
                    (left, _) => Phase::Definitions { left: left - 1 },
                };
                Ok(Step::More)
            }
            Phase::DefinitionsEnd => {
                self.phase = Phase::Rows;
                Ok(Step::More)
            }
            Phase::Rows => self.row(command, packet),
        }
    }

    fn prepared(&mut self, packet: &[u8]) -> Result<Step, Malformed> {
        let mut reader = Reader(packet);
        if reader.u8()? != OK {
            return Err(Malformed);
        }
        let id = reader.u32()?;
        let (columns, parameters) = (reader.u16()?, reader.u16()?);
        let packets = [columns, parameters]
            .into_iter()
            .filter(|count| *count > 0)
            .map(|count| usize::from(count) + usize::from(!self.capabilities.without_eof))
            .sum();
        if packets == 0 {
            return Ok(self.complete(Answer::Prepared { id, parameters }));
        }
        self.phase = Phase::Skipping {
            packets,
            id,
            parameters,
        };
        Ok(Step::More)
    }

    fn first(&mut self, command: &Command, packet: &[u8]) -> Result<Step, Malformed> {
        let mut reader = Reader(packet);
        match packet.first() {
            Some(&OK) => {
                reader.u8()?;
                let (affected, id) = (reader.length()?, reader.length()?);
                let more = self.read_status(command, &mut reader)?;
                let result = ResultSet {
                    affected,
                    last_insert_id: i64::try_from(id).ok().filter(|id| *id != 0),
                    ..ResultSet::default()
                };
                Ok(self.end_of_set(result, more))
            }
            Some(&INFILE) => Ok(Step::File(packet[1..].to_vec())),
            _ => {
                let left = reader.length()?;
                if left == 0 || !reader.is_empty() {
                    return Err(Malformed);
                }
                self.phase = Phase::Definitions { left };
                Ok(Step::More)
            }
        }
    }

    fn row(&mut self, command: &Command, packet: &[u8]) -> Result<Step, Malformed> {
        let limit = if self.capabilities.without_eof {
            super::wire::LONGEST_PACKET_PART
        } else {
            9
        };
        if packet.first() == Some(&EOF) && packet.len() < limit {
            let mut reader = Reader(&packet[1..]);
            let more = if self.capabilities.without_eof {
                reader.length()?;
                reader.length()?;
                self.read_status(command, &mut reader)?
            } else {
                reader.u16()?;
                self.status = reader.u16()?;
                self.status & MORE_RESULTS != 0
            };
            let result = ResultSet {
                columns: Arc::clone(&self.shape.columns),
                rows: std::mem::take(&mut self.rows),
                affected: std::mem::take(&mut self.count),
                ..ResultSet::default()
            };
            return Ok(self.end_of_set(result, more));
        }
        let row = match command {
            Command::Execute | Command::Fetch => self.shape.binary(packet)?,
            _ => self.shape.text(packet)?,
        };
        self.rows.push(row);
        self.count += 1;
        Ok(Step::More)
    }

    /// Reads the rest of an OK packet. Returns whether another result follows.
    fn read_status(
        &mut self,
        command: &Command,
        reader: &mut Reader<'_>,
    ) -> Result<bool, Malformed> {
        self.status = reader.u16()?;
        reader.u16()?;
        let told = self.capabilities.tracks_session && self.status & SESSION_CHANGED != 0;
        self.session_changed |= told && !matches!(command, Command::Control | Command::Silent);
        Ok(self.status & MORE_RESULTS != 0)
    }

    fn end_of_set(&mut self, result: ResultSet, more: bool) -> Step {
        // A procedure ends with an OK packet that belongs to no result.
        if self.done.is_empty() || !result.columns.is_empty() {
            self.done.push(result);
        }
        self.phase = Phase::Start;
        if more {
            return Step::More;
        }
        let mut results = std::mem::take(&mut self.done).into_iter();
        let mut first = results.next().unwrap_or_default();
        first.further = results.collect();
        self.complete(Answer::Done(first))
    }

    fn complete(&mut self, answer: Answer) -> Step {
        self.phase = Phase::Start;
        self.definitions.clear();
        self.rows.clear();
        self.done.clear();
        self.count = 0;
        Step::Complete(answer)
    }
}
