//! How deep messages may nest, and how much memory decoded ones may take.

use super::error::WireError;

/// Nesting limit of messages, as in other implementations.
pub const MAX_DEPTH: usize = 100;

/// How many messages may still begin inside each other, inside the current one.
///
/// Every message of the wire counts, whatever stands for it in PHP or JSON: groups, the entries of maps, and all messages that a
/// `google.protobuf.Struct` is made of. Whatever reads or writes messages counts with this type, so that what one writes another reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth(usize);

impl Depth {
    /// Inside the outermost message.
    pub const OUTERMOST: Self = Self(MAX_DEPTH - 1);

    /// Inside a message that begins here.
    ///
    /// # Errors
    /// It would be nested too deep.
    #[inline]
    pub fn enter(self) -> Result<Self, WireError> {
        let left = self.0.checked_sub(1);
        left.map(Self).ok_or(WireError::TooDeep(MAX_DEPTH))
    }
}

impl Default for Depth {
    fn default() -> Self {
        Self::OUTERMOST
    }
}

/// The memory that decoded values may still take.
///
/// A message of two bytes becomes an object of more than a hundred: limiting the bytes of the wire does not limit the memory. The sizes
/// are those of values in PHP 8, about: the allocator rounds them up, and arrays grow in steps.
#[derive(Debug, Clone)]
pub struct Budget {
    left: usize,
    limit: usize,
}

/// An object without fields, and a place for each field.
const OBJECT: usize = 72;
const SLOT: usize = 16;
/// An array with its first elements, and a further element.
pub(super) const ARRAY: usize = 192;
pub(super) const ELEMENT: usize = 16;
/// An entry of a map without the text of its key.
pub(super) const ENTRY: usize = 32;
/// The header of a string.
const TEXT: usize = 32;
pub(super) const TIME: usize = 400;
/// A value of a `google.protobuf.Struct` or `ListValue`, which exists in Rust and in PHP for a while.
pub(super) const DYNAMIC: usize = 48;

impl Budget {
    pub const UNLIMITED: Self = Self::new(usize::MAX);

    pub const fn new(limit: usize) -> Self {
        Self { left: limit, limit }
    }

    /// # Errors
    /// That many bytes are not left.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<(), WireError> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(WireError::TooLarge(self.limit)),
        }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::UNLIMITED
    }
}

/// The limit of the memory of a received message whose size has that limit: enough for messages of small values, and for small messages
/// of any kind.
pub fn message_memory(message_bytes: usize) -> usize {
    const LEAST: usize = 16 << 20;
    const FACTOR: usize = 24;
    message_bytes.saturating_mul(FACTOR).saturating_add(LEAST)
}

#[inline]
pub(super) fn object(fields: usize) -> usize {
    OBJECT + SLOT * fields
}

/// The engine shares strings of at most one byte.
#[inline]
pub(super) fn text(bytes: &[u8]) -> usize {
    match bytes.len() {
        0 | 1 => 0,
        length => TEXT + length,
    }
}

/// The limits of one decoding.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    pub depth: Depth,
    pub memory: Budget,
}
