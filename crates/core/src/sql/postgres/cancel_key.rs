use super::text::Malformed;
use super::wire::Reader;

/// Identifies a session in a `CancelRequest`. The server sends it as `BackendKeyData`.
#[derive(Debug, Clone, Copy, Default)]
pub struct CancelKey {
    pub(super) process_id: i32,
    pub(super) secret: i32,
}

impl CancelKey {
    pub(super) fn read(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body);
        Ok(Self {
            process_id: reader.i32()?,
            secret: reader.i32()?,
        })
    }
}
