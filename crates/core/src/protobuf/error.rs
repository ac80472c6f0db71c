//! Errors in messages and in descriptors.

use thiserror::Error;

/// The bytes violate the wire format.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WireError {
    #[error("the message ends in the middle of a value")]
    Truncated,
    #[error("a varint is longer than 10 bytes")]
    VarintTooLong,
    #[error("a length of {length} bytes is announced where {left} are left")]
    LengthTooLarge { length: u64, left: usize },
    #[error("a tag has the field number 0 or one above 536870911")]
    FieldNumber,
    #[error("a tag has the wire type {0}, which does not exist")]
    WireType(u8),
    #[error("a group ends that was not started")]
    UnexpectedGroupEnd,
    #[error("the group of field {0} is not ended")]
    UnfinishedGroup(u32),
    #[error("messages are nested deeper than {0} levels")]
    TooDeep(usize),
    #[error("its values take more than {0} bytes of memory, which is the limit")]
    TooLarge(usize),
    #[error("text that is not UTF-8")]
    Utf8,
    #[error("a google.protobuf.Timestamp has {0} nanoseconds, expected 0 to 999999999")]
    TimestampNanos(i32),
}

/// Why a message could not be decoded, and at which field.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecodeError {
    #[error("{0}")]
    Wire(#[from] WireError),
    #[error("field {name} ({number}) of {message}: {problem}")]
    Field {
        message: String,
        name: String,
        number: u32,
        problem: WireError,
    },
    #[error("the required field {name} ({number}) of {message} is missing")]
    Required {
        message: String,
        name: String,
        number: u32,
    },
}

impl DecodeError {
    /// Whether the values take more memory than the limit.
    pub fn is_too_large(&self) -> bool {
        let (Self::Wire(problem) | Self::Field { problem, .. }) = self else {
            return false;
        };
        matches!(problem, WireError::TooLarge(_))
    }
}

/// Why descriptors cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SchemaError {
    #[error("the file descriptor is malformed: {0}")]
    Malformed(#[from] WireError),
    #[error("{file} uses the type {name} in {user}, which is not known")]
    UnknownType {
        file: String,
        user: String,
        name: String,
    },
    #[error("{name} is defined in {file} and in {other}")]
    Duplicate {
        name: String,
        file: String,
        other: String,
    },
    #[error("{file} was added before with another content")]
    FileChanged { file: String },
    #[error("{file}: {user} has the unknown field type {kind}")]
    UnknownKind {
        file: String,
        user: String,
        kind: i32,
    },
    #[error(
        "{file}: the syntax \"{syntax}\" is not supported; proto2, proto3 and editions 2023 and 2024 are"
    )]
    Syntax { file: String, syntax: String },
    #[error("{file}: {user} is a map entry without key and value")]
    MapEntry { file: String, user: String },
}
