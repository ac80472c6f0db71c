//! permessage-deflate (RFC 7692).
//!
//! Without context takeover in either direction: a window per WebSocket would cost 300 KB for sending and 40 KB for receiving.

use std::cell::RefCell;

use bytes::Bytes;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use hyper::HeaderMap;
use hyper::header::{HeaderValue, SEC_WEBSOCKET_EXTENSIONS};

use super::frame::Violation;

const NAME: &str = "permessage-deflate";
/// The end of every compressed message, which is not sent (RFC 7692 §7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];
/// Shorter messages are not compressed: most would not get shorter.
const SHORT: usize = 256;
const MAX_WINDOW: u8 = 15;
/// Bytes that are decompressed in one step.
const OUTPUT_BYTES: usize = 16 << 10;
/// deflate also has a window of 8 bits, which zlib cannot produce.
const MIN_WINDOW: u8 = 9;

thread_local! {
    static INFLATER: RefCell<Inflater> = RefCell::new(Inflater {
        stream: Decompress::new(false),
        output: vec![0; OUTPUT_BYTES].into(),
    });
    static DEFLATER: RefCell<Compress> = RefCell::new(Compress::new(Compression::fast(), false));
}

/// The negotiated extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Agreement {
    /// Base-2 logarithm of the window with which the client decompresses.
    pub window: u8,
}

impl Agreement {
    /// Accepts the first offer of the client that can be met. Returns the value of the response field with it.
    pub(super) fn of(headers: &HeaderMap) -> Option<(Self, HeaderValue)> {
        let fields = headers.get_all(SEC_WEBSOCKET_EXTENSIONS).iter();
        let fields = fields.filter_map(|field| field.to_str().ok());
        let window = fields.flat_map(|field| field.split(',')).find_map(offer)?;
        let mut answer = format!("{NAME}; server_no_context_takeover; client_no_context_takeover");
        if let Some(window) = window {
            answer.push_str(&format!("; server_max_window_bits={window}"));
        }
        let window = window.unwrap_or(MAX_WINDOW);
        let answer = HeaderValue::try_from(answer).ok()?;
        Some((Self { window }, answer))
    }
}

/// The window to which an offer limits the server, if it does; `None` if the offer cannot be met (RFC 7692 §7.1).
fn offer(text: &str) -> Option<Option<u8>> {
    let mut parts = text.split(';').map(str::trim);
    if parts.next() != Some(NAME) {
        return None;
    }
    let mut seen = Vec::new();
    let mut window = None;
    for part in parts {
        let (name, value) = match part.split_once('=') {
            Some((name, value)) => (name.trim_end(), Some(value.trim_start())),
            None => (part, None),
        };
        if seen.contains(&name) {
            return None;
        }
        seen.push(name);
        match (name, value) {
            ("server_no_context_takeover" | "client_no_context_takeover", None)
            | ("client_max_window_bits", None) => {}
            ("client_max_window_bits", Some(value)) => drop(bits(value)?),
            ("server_max_window_bits", Some(value)) => {
                window = Some(bits(value).filter(|bits| *bits >= MIN_WINDOW)?);
            }
            _ => return None,
        }
    }
    Some(window)
}

/// Parses 8 to 15, without leading zeros, optionally quoted.
fn bits(value: &str) -> Option<u8> {
    let unquoted = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let value = unquoted.unwrap_or(value);
    let number: u8 = value.parse().ok()?;
    let is_written_so = number.to_string() == value;
    (is_written_so && (8..=MAX_WINDOW).contains(&number)).then_some(number)
}

/// Compresses a message; `None` if it is not worth it.
pub(super) fn deflate(message: &[u8], window: u8) -> Option<Bytes> {
    if message.len() < SHORT {
        return None;
    }
    let coded = match window {
        MAX_WINDOW => DEFLATER.with_borrow_mut(|deflater| {
            deflater.reset();
            deflated(deflater, message)
        }),
        window => {
            let level = Compression::fast();
            deflated(
                &mut Compress::new_with_window_bits(level, false, window),
                message,
            )
        }
    };
    coded
        .filter(|coded| coded.len() < message.len())
        .map(Bytes::from)
}

fn deflated(deflater: &mut Compress, message: &[u8]) -> Option<Vec<u8>> {
    let mut coded = Vec::with_capacity(message.len() / 2 + SHORT);
    loop {
        let read = deflater.total_in() as usize;
        let flush = FlushCompress::Sync;
        deflater
            .compress_vec(&message[read..], &mut coded, flush)
            .ok()?;
        // Free space in the output means that everything was written.
        if coded.len() < coded.capacity() {
            break;
        }
        coded.reserve(coded.len());
    }
    coded.truncate(coded.strip_suffix(&TAIL)?.len());
    Some(coded)
}

/// Decompresses a message of at most `limit` bytes.
pub(super) fn inflate(payload: &[u8], limit: usize) -> Result<Bytes, Violation> {
    INFLATER.with_borrow_mut(|inflater| {
        inflater.stream.reset(false);
        let mut plain = Vec::with_capacity((payload.len() * 2).clamp(SHORT, limit.max(SHORT)));
        for chunk in [payload, &TAIL] {
            inflater.inflate(chunk, &mut plain, limit)?;
        }
        Ok(plain.into())
    })
}

struct Inflater {
    stream: Decompress,
    /// Beside the message, whose unused memory would have to be initialized at each step: a client can make steps of a few bytes.
    output: Box<[u8]>,
}

impl Inflater {
    /// Appends the plain text of a part of a message.
    ///
    /// A final block ends a stream of DEFLATE, not the message: a sender may have more blocks after it (RFC 7692 §7.2.1). They are a stream
    /// of their own, as browsers read them.
    fn inflate(
        &mut self,
        mut chunk: &[u8],
        plain: &mut Vec<u8>,
        limit: usize,
    ) -> Result<(), Violation> {
        loop {
            let (read, written) = (self.stream.total_in(), self.stream.total_out());
            let step = self
                .stream
                .decompress(chunk, &mut self.output, FlushDecompress::Sync);
            let status = step.map_err(|_| Violation::Compression)?;
            chunk = &chunk[(self.stream.total_in() - read) as usize..];
            let written = (self.stream.total_out() - written) as usize;
            plain.extend_from_slice(&self.output[..written]);
            if plain.len() > limit {
                return Err(Violation::TooLong);
            }
            let has_more_output = written == self.output.len();
            if status == Status::StreamEnd {
                self.stream.reset(false);
                if chunk.is_empty() {
                    return Ok(());
                }
            } else if !has_more_output {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn agreed(offers: &str) -> Option<(u8, String)> {
        let mut headers = HeaderMap::new();
        headers.insert(
            SEC_WEBSOCKET_EXTENSIONS,
            HeaderValue::from_str(offers).unwrap(),
        );
        let (agreement, answer) = Agreement::of(&headers)?;
        Some((agreement.window, answer.to_str().unwrap().to_owned()))
    }

    #[test]
    fn the_first_offer_that_can_be_met_is_taken() {
        let plain = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
        let ten = format!("{plain}; server_max_window_bits=10");
        for (offers, window, answer) in [
            ("permessage-deflate", 15, plain),
            ("permessage-deflate; client_max_window_bits", 15, plain),
            (
                "x-webkit-deflate-frame, permessage-deflate ; client_max_window_bits=9",
                15,
                plain,
            ),
            ("permessage-deflate; server_max_window_bits=10", 10, &ten),
            (
                "permessage-deflate;server_max_window_bits = \"10\";server_no_context_takeover",
                10,
                &ten,
            ),
            (
                "permessage-deflate; server_max_window_bits=8, permessage-deflate",
                15,
                plain,
            ),
        ] {
            assert_eq!(
                agreed(offers),
                Some((window, answer.to_owned())),
                "{offers}"
            );
        }
    }

    #[test]
    fn an_offer_that_is_wrong_is_none() {
        for offers in [
            "",
            "deflate",
            "permessage-deflate; server_max_window_bits",
            "permessage-deflate; server_max_window_bits=8",
            "permessage-deflate; server_max_window_bits=16",
            "permessage-deflate; server_max_window_bits=010",
            "permessage-deflate; server_no_context_takeover=1",
            "permessage-deflate; client_max_window_bits=7",
            "permessage-deflate; client_max_window_bits; client_max_window_bits",
            "permessage-deflate; unknown",
            "permessage-deflate;",
        ] {
            assert_eq!(agreed(offers), None, "{offers}");
        }
    }

    /// Bytes without a pattern (a linear congruential generator).
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        };
        std::iter::repeat_with(next).take(length).collect()
    }

    #[test]
    fn messages_come_back_with_every_window() {
        for length in [SHORT, 1000, 70_000, 1 << 20] {
            let message: Vec<u8> = noise(length).iter().map(|byte| byte % 8).collect();
            for window in MIN_WINDOW..=MAX_WINDOW {
                let coded = deflate(&message, window).unwrap();
                assert!(coded.len() < message.len());
                assert_eq!(inflate(&coded, length).unwrap(), message);
                assert_eq!(inflate(&coded, length - 1), Err(Violation::TooLong));
            }
        }
    }

    #[test]
    fn messages_that_compression_does_not_shorten_stay_uncompressed() {
        assert_eq!(deflate(&noise(5000), 15), None);
        assert_eq!(deflate(&[0; SHORT - 1], 15), None);
    }

    /// The examples of RFC 7692 §7.2.3.
    #[test]
    fn the_examples_of_the_standard_are_read() {
        for payload in [
            &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00][..],
            &[
                0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00,
            ],
            &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00],
            &[
                0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00,
            ],
        ] {
            assert_eq!(inflate(payload, 5).unwrap(), "Hello");
        }
    }

    /// A message of blocks that end a stream each (RFC 7692 §7.2.1 allows final blocks, and §7.2.3.4 has one), with the octet that follows
    /// the last of them.
    fn of_final_blocks(parts: &[&[u8]]) -> Vec<u8> {
        let mut payload = Vec::new();
        for part in parts {
            let mut deflater = Compress::new(Compression::fast(), false);
            let mut coded = Vec::with_capacity(part.len() + SHORT);
            let status = deflater.compress_vec(part, &mut coded, FlushCompress::Finish);
            assert_eq!(status.unwrap(), Status::StreamEnd);
            payload.extend(coded);
        }
        payload.push(0);
        payload
    }

    #[test]
    fn blocks_after_a_final_one_are_read() {
        let mut payload = of_final_blocks(&[b"first ", b"second ", b""]);
        assert_eq!(inflate(&payload, 20).unwrap(), "first second ");
        // The sender goes on with blocks that are not final.
        payload.pop();
        let rest = b"the rest of the message ".repeat(20);
        payload.extend(deflate(&rest, 15).unwrap());
        let whole = [&b"first second "[..], &rest].concat();
        assert_eq!(inflate(&payload, whole.len()).unwrap(), whole);
        assert_eq!(inflate(&payload, whole.len() - 1), Err(Violation::TooLong));
        // More of them than the first buffer holds.
        let long = noise(3000);
        let payload = of_final_blocks(&[long.as_slice(); 40]);
        assert_eq!(inflate(&payload, 120_000).unwrap(), long.repeat(40));
        assert_eq!(inflate(&payload, 119_999), Err(Violation::TooLong));
    }

    #[test]
    fn damage_after_a_final_block_is_a_violation() {
        let mut payload = of_final_blocks(&[b"first"]);
        payload.pop();
        // A block of the reserved type.
        payload.push(0b110);
        assert_eq!(inflate(&payload, 100), Err(Violation::Compression));
    }

    proptest! {
        #[test]
        fn messages_of_final_blocks_come_back(parts in vec(vec(any::<u8>(), 0..400), 1..8)) {
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(inflate(&of_final_blocks(&parts), 4000).unwrap(), parts.concat());
        }

        #[test]
        fn damaged_payloads_end_in_bytes_within_the_limit_or_in_an_error(
            damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            rest in vec(any::<u8>(), 0..20),
        ) {
            let mut payload = deflate(&b"to be or not to be, ".repeat(100), 15).unwrap().to_vec();
            for (at, byte) in damage {
                let at = at.index(payload.len());
                payload[at] = byte;
            }
            payload.extend(rest);
            if let Ok(plain) = inflate(&payload, 3000) {
                prop_assert!(plain.len() <= 3000);
            }
        }

        #[test]
        fn no_bytes_make_an_offer_panic(text in "[ -~]{0,60}") {
            offer(&text);
            offer(&format!("permessage-deflate;{text}"));
        }
    }
}
