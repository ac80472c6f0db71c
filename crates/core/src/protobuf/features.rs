//! The differences between proto2, proto3 and the editions, expressed as the features of editions.

use super::error::WireError;
use super::limits::Depth;
use super::wire::Reader;

/// The features in force for one definition; it inherits them from the enclosing definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    pub presence: FieldPresence,
    pub open_enum: bool,
    pub packed: bool,
    pub validate_utf8: bool,
    pub delimited: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldPresence {
    Explicit,
    Implicit,
    Required,
}

pub const PROTO2: Features = Features {
    presence: FieldPresence::Explicit,
    open_enum: false,
    packed: false,
    validate_utf8: false,
    delimited: false,
};

pub const PROTO3: Features = Features {
    presence: FieldPresence::Implicit,
    open_enum: true,
    packed: true,
    validate_utf8: true,
    delimited: false,
};

pub const EDITIONS: Features = Features {
    presence: FieldPresence::Explicit,
    ..PROTO3
};

impl Features {
    /// These features with the overrides of a serialized `FeatureSet`.
    pub fn overridden(mut self, set: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(set);
        while !reader.is_empty() {
            let tag = reader.tag()?;
            if tag.wire != super::wire::VARINT {
                reader.skip(tag, Depth::OUTERMOST)?;
                continue;
            }
            let value = reader.varint()?;
            match (tag.number, value) {
                (1, 1) => self.presence = FieldPresence::Explicit,
                (1, 2) => self.presence = FieldPresence::Implicit,
                (1, 3) => self.presence = FieldPresence::Required,
                (2, 1 | 2) => self.open_enum = value == 1,
                (3, 1 | 2) => self.packed = value == 1,
                (4, 2 | 3) => self.validate_utf8 = value == 2,
                (5, 1 | 2) => self.delimited = value == 2,
                _ => {}
            }
        }
        Ok(self)
    }
}
