//! The common case of a delivery: all of its frames are in the buffer, one after the other.

use super::super::codec::frame::{self, ContentHeader, Frame};
use super::super::codec::method::{self, Incoming};
use super::super::message::{Layout, properties_range};

pub(super) struct WholeDelivery {
    pub(super) channel: u16,
    pub(super) len: usize,
    pub(super) tag: u64,
    pub(super) redelivered: bool,
    pub(super) layout: Layout,
}

/// A delivery at the front of `buffer` whose frames follow each other and are all here.
pub(super) fn whole_delivery(buffer: &[u8], frame_max: usize) -> Option<WholeDelivery> {
    let deliver = frame_at(buffer, 0, frame_max)?;
    if deliver.kind != frame::METHOD || !deliver.payload.starts_with(&method::DELIVER.to_be_bytes())
    {
        return None;
    }
    let header_at = deliver.len();
    let header = frame_at(buffer, header_at, frame_max)?;
    if header.kind != frame::HEADER
        || header.channel != deliver.channel
        || header.payload.len() < ContentHeader::LEN + 2
    {
        return None;
    }
    let body_size = ContentHeader::decode(header.payload).ok()?.body_size;
    let body_frame_at = header_at + header.len();
    let (body_at, body_len, len) = if body_size == 0 {
        (body_frame_at, 0, body_frame_at)
    } else {
        let body = frame_at(buffer, body_frame_at, frame_max)?;
        let complete = body.payload.len() as u64 == body_size;
        if body.kind != frame::BODY || body.channel != deliver.channel || !complete {
            return None;
        }
        let body_at = body_frame_at + frame::HEADER_LEN;
        (body_at, body.payload.len(), body_frame_at + body.len())
    };
    let Ok(Incoming::Deliver {
        tag,
        redelivered,
        exchange_at,
    }) = Incoming::decode(deliver.payload)
    else {
        return None;
    };
    let header_payload_at = header_at + frame::HEADER_LEN;
    Some(WholeDelivery {
        channel: deliver.channel,
        len,
        tag,
        redelivered,
        layout: Layout {
            exchange_at: (frame::HEADER_LEN + exchange_at) as u32,
            properties: properties_range(header_payload_at, header.payload.len()),
            body: body_at as u32..(body_at + body_len) as u32,
        },
    })
}

fn frame_at(buffer: &[u8], at: usize, frame_max: usize) -> Option<Frame<'_>> {
    frame::parse(buffer.get(at..)?, frame_max).ok().flatten()
}
