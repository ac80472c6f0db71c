//! Violations of the protocol by the peer.

use super::super::channel::ContentError;

/// A violation of the protocol, with the reply code that the peer receives (specification §1.2).
#[derive(Debug)]
pub(super) struct Violation {
    pub(super) code: u16,
    pub(super) text: String,
}

pub(super) const FRAME_ERROR: u16 = 501;
pub(super) const SYNTAX_ERROR: u16 = 502;
pub(super) const COMMAND_INVALID: u16 = 503;
pub(super) const CHANNEL_ERROR: u16 = 504;
pub(super) const UNEXPECTED_FRAME: u16 = 505;

pub(super) fn violation(code: u16, text: impl Into<String>) -> Violation {
    Violation {
        code,
        text: text.into(),
    }
}

pub(super) fn content_violation(number: u16, error: ContentError) -> Violation {
    match error {
        ContentError::Unexpected => violation(
            UNEXPECTED_FRAME,
            format!("content frames out of order on channel {number}"),
        ),
        ContentError::Malformed => violation(
            FRAME_ERROR,
            format!("malformed content on channel {number}"),
        ),
        ContentError::TooLarge => violation(
            FRAME_ERROR,
            format!("a body larger than 1 GiB on channel {number}"),
        ),
    }
}
