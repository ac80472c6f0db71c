use std::borrow::Cow;

use super::field::FieldTable;
use super::wire::{Malformed, Reader, put_short, put_u16, put_u64};

/// The properties of a message (specification §1.8.1, class basic). Text values have at most 255 bytes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Properties<'a> {
    pub content_type: Option<Cow<'a, str>>,
    pub content_encoding: Option<Cow<'a, str>>,
    pub headers: FieldTable<'a>,
    /// 2 survives a restart of the broker in a durable queue, anything else does not.
    pub delivery_mode: Option<u8>,
    pub priority: Option<u8>,
    pub correlation_id: Option<Cow<'a, str>>,
    pub reply_to: Option<Cow<'a, str>>,
    /// Milliseconds, as decimal digits.
    pub expiration: Option<Cow<'a, str>>,
    pub message_id: Option<Cow<'a, str>>,
    /// Seconds since 1970.
    pub timestamp: Option<u64>,
    pub kind: Option<Cow<'a, str>>,
    pub user_id: Option<Cow<'a, str>>,
    pub app_id: Option<Cow<'a, str>>,
}

const CONTENT_TYPE: u16 = 1 << 15;
const CONTENT_ENCODING: u16 = 1 << 14;
const HEADERS: u16 = 1 << 13;
const DELIVERY_MODE: u16 = 1 << 12;
const PRIORITY: u16 = 1 << 11;
const CORRELATION_ID: u16 = 1 << 10;
const REPLY_TO: u16 = 1 << 9;
const EXPIRATION: u16 = 1 << 8;
const MESSAGE_ID: u16 = 1 << 7;
const TIMESTAMP: u16 = 1 << 6;
const KIND: u16 = 1 << 5;
const USER_ID: u16 = 1 << 4;
const APP_ID: u16 = 1 << 3;
const CLUSTER_ID: u16 = 1 << 2;
const MORE_FLAGS: u16 = 1;

impl<'a> Properties<'a> {
    /// Every text value with its name, for checks of its length.
    pub(crate) fn texts(&self) -> [(&'static str, Option<&str>); 9] {
        [
            ("content type", self.content_type.as_deref()),
            ("content encoding", self.content_encoding.as_deref()),
            ("correlation id", self.correlation_id.as_deref()),
            ("reply-to", self.reply_to.as_deref()),
            ("expiration", self.expiration.as_deref()),
            ("message id", self.message_id.as_deref()),
            ("type", self.kind.as_deref()),
            ("user id", self.user_id.as_deref()),
            ("app id", self.app_id.as_deref()),
        ]
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        put_u16(out, 0);
        let mut flags = 0;
        let mut text = |out: &mut Vec<u8>, flag: u16, value: &Option<Cow<'a, str>>| {
            if let Some(value) = value {
                flags |= flag;
                put_short(out, value);
            }
        };
        text(out, CONTENT_TYPE, &self.content_type);
        text(out, CONTENT_ENCODING, &self.content_encoding);
        let mut more = 0;
        if !self.headers.is_empty() {
            more |= HEADERS;
            self.headers.encode(out);
        }
        if let Some(mode) = self.delivery_mode {
            more |= DELIVERY_MODE;
            out.push(mode);
        }
        if let Some(priority) = self.priority {
            more |= PRIORITY;
            out.push(priority);
        }
        text(out, CORRELATION_ID, &self.correlation_id);
        text(out, REPLY_TO, &self.reply_to);
        text(out, EXPIRATION, &self.expiration);
        text(out, MESSAGE_ID, &self.message_id);
        if let Some(seconds) = self.timestamp {
            more |= TIMESTAMP;
            put_u64(out, seconds);
        }
        text(out, KIND, &self.kind);
        text(out, USER_ID, &self.user_id);
        text(out, APP_ID, &self.app_id);
        out[at..at + 2].copy_from_slice(&(flags | more).to_be_bytes());
    }

    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let flags = reader.u16()?;
        if flags & MORE_FLAGS != 0 {
            return Err(Malformed("property flags"));
        }
        let has = |flag| flags & flag != 0;
        let text =
            |reader: &mut Reader<'a>, flag| has(flag).then(|| reader.short_string()).transpose();
        let byte = |reader: &mut Reader<'a>, flag| has(flag).then(|| reader.u8()).transpose();
        let reader = &mut reader;
        let properties = Self {
            content_type: text(reader, CONTENT_TYPE)?,
            content_encoding: text(reader, CONTENT_ENCODING)?,
            headers: if has(HEADERS) {
                FieldTable::decode(reader)?
            } else {
                FieldTable::new()
            },
            delivery_mode: byte(reader, DELIVERY_MODE)?,
            priority: byte(reader, PRIORITY)?,
            correlation_id: text(reader, CORRELATION_ID)?,
            reply_to: text(reader, REPLY_TO)?,
            expiration: text(reader, EXPIRATION)?,
            message_id: text(reader, MESSAGE_ID)?,
            timestamp: has(TIMESTAMP).then(|| reader.u64()).transpose()?,
            kind: text(reader, KIND)?,
            user_id: text(reader, USER_ID)?,
            app_id: text(reader, APP_ID)?,
        };
        text(reader, CLUSTER_ID)?;
        Ok(properties)
    }

    pub fn into_owned(self) -> Properties<'static> {
        let owned = |text: Option<Cow<'a, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        Properties {
            content_type: owned(self.content_type),
            content_encoding: owned(self.content_encoding),
            headers: self.headers.into_owned(),
            delivery_mode: self.delivery_mode,
            priority: self.priority,
            correlation_id: owned(self.correlation_id),
            reply_to: owned(self.reply_to),
            expiration: owned(self.expiration),
            message_id: owned(self.message_id),
            timestamp: self.timestamp,
            kind: owned(self.kind),
            user_id: owned(self.user_id),
            app_id: owned(self.app_id),
        }
    }
}
