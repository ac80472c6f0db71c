//! The driver's side of one channel: calls that wait for their answer, and content that is arriving.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::codec::frame::ContentHeader;
use super::codec::method::MethodId;
use super::confirms::Confirmation;
use super::consumer_state::ReceivedDelivery;
use super::message::{Layout, properties_range};
use super::session::{CallResult, Role};

/// Bodies above this are refused: RabbitMQ's own limit is 512 MiB.
const MAX_BODY: u64 = 1 << 30;
/// Reserved at once for an announced body; more only as it really arrives.
const MAX_RESERVE: usize = 1 << 20;

pub(super) struct Channel {
    pub(super) role: Role,
    /// In the order they were sent, which is the order of their answers.
    pub(super) waiting: VecDeque<Call>,
    /// A `channel.close` was sent: everything but the answer is passed over.
    pub(super) closing: bool,
    pub(super) partial: Option<PartialContent>,
    /// The events of this read, which are delivered together.
    pub(super) deliveries: Vec<ReceivedDelivery>,
    pub(super) confirmations: Vec<Confirmation>,
}

/// A method of this side that is not answered yet.
pub(super) struct Call {
    /// The method that answers it.
    pub(super) expected: MethodId,
    pub(super) reply: oneshot::Sender<CallResult>,
    /// Since when the broker could have answered it.
    pub(super) since: Instant,
}

impl Call {
    pub(super) fn new(expected: MethodId, reply: oneshot::Sender<CallResult>) -> Self {
        Self {
            expected,
            reply,
            since: Instant::now(),
        }
    }
}

impl Channel {
    pub(super) fn new(role: Role) -> Self {
        Self {
            role,
            waiting: VecDeque::new(),
            closing: false,
            partial: None,
            deliveries: Vec::new(),
            confirmations: Vec::new(),
        }
    }

    pub(super) fn has_batch(&self) -> bool {
        !self.deliveries.is_empty() || !self.confirmations.is_empty()
    }
}

/// The owner of a content header and body.
#[derive(Debug, Clone, Copy)]
pub(super) enum ContentKind {
    Deliver {
        tag: u64,
        redelivered: bool,
        exchange_at: usize,
    },
    Return,
}

/// A message whose frames have not all arrived, copied together: method payload, header payload, body.
pub(super) struct PartialContent {
    pub(super) kind: ContentKind,
    data: Vec<u8>,
    method_len: usize,
    /// Set by the header frame.
    content: Option<Content>,
}

#[derive(Clone, Copy)]
struct Content {
    body_at: usize,
    body_size: usize,
}

/// Why a frame does not fit where it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentError {
    Unexpected,
    Malformed,
    TooLarge,
}

impl PartialContent {
    pub(super) fn new(kind: ContentKind, method: &[u8]) -> Self {
        Self {
            kind,
            data: method.to_vec(),
            method_len: method.len(),
            content: None,
        }
    }

    pub(super) fn header(&mut self, payload: &[u8]) -> Result<(), ContentError> {
        if self.content.is_some() {
            return Err(ContentError::Unexpected);
        }
        let header = ContentHeader::decode(payload).map_err(|_| ContentError::Malformed)?;
        if payload.len() < ContentHeader::LEN + 2 {
            return Err(ContentError::Malformed);
        }
        if header.body_size > MAX_BODY {
            return Err(ContentError::TooLarge);
        }
        self.data.extend_from_slice(payload);
        self.content = Some(Content {
            body_at: self.data.len(),
            body_size: header.body_size as usize,
        });
        self.data
            .reserve((header.body_size as usize).min(MAX_RESERVE));
        Ok(())
    }

    pub(super) fn body(&mut self, payload: &[u8]) -> Result<(), ContentError> {
        let content = self.content.ok_or(ContentError::Unexpected)?;
        if self.data.len() - content.body_at + payload.len() > content.body_size {
            return Err(ContentError::Malformed);
        }
        self.data.extend_from_slice(payload);
        Ok(())
    }

    pub(super) fn is_complete(&self) -> bool {
        self.content
            .is_some_and(|content| self.data.len() - content.body_at == content.body_size)
    }

    /// The whole message; the layout's exchange is that of a delivery.
    pub(super) fn finish(self) -> (Bytes, Layout) {
        let body_at = self
            .content
            .map_or(self.data.len(), |content| content.body_at);
        let exchange_at = match self.kind {
            ContentKind::Deliver { exchange_at, .. } => exchange_at,
            ContentKind::Return => 0,
        };
        let layout = Layout {
            exchange_at: exchange_at as u32,
            properties: properties_range(self.method_len, body_at - self.method_len),
            body: body_at as u32..self.data.len() as u32,
        };
        (Bytes::from(self.data), layout)
    }
}
