//! Any input from a server is decoded to a value or to [`Malformed`].

use std::collections::VecDeque;

use bytes::{BufMut, BytesMut};
use postgres_protocol::message::backend as tag;
use proptest::collection::vec;
use proptest::prelude::*;

use super::cancel_key::CancelKey;
use super::decode::RowShape;
use super::failure::ServerFailure;
use super::replies::{Chunk, Descriptions, Drain, Replies, Results};
use super::text::Malformed;
use super::types::{self, Oid, Type};
use crate::sql::Value;

const TAGS: [u8; 17] = [
    tag::DATA_ROW_TAG,
    tag::COMMAND_COMPLETE_TAG,
    tag::ROW_DESCRIPTION_TAG,
    tag::PARAMETER_DESCRIPTION_TAG,
    tag::READY_FOR_QUERY_TAG,
    tag::BIND_COMPLETE_TAG,
    tag::PARSE_COMPLETE_TAG,
    tag::CLOSE_COMPLETE_TAG,
    tag::NO_DATA_TAG,
    tag::PORTAL_SUSPENDED_TAG,
    tag::EMPTY_QUERY_RESPONSE_TAG,
    tag::COPY_IN_RESPONSE_TAG,
    tag::COPY_OUT_RESPONSE_TAG,
    tag::COPY_DATA_TAG,
    tag::COPY_DONE_TAG,
    tag::AUTHENTICATION_TAG,
    b'?',
];

/// Types with a decoder of their own, and arrays of them.
const TYPES: [Oid; 22] = [
    types::BOOL,
    types::INT2,
    types::INT4,
    types::INT8,
    types::OID,
    types::FLOAT4,
    types::FLOAT8,
    types::BYTEA,
    types::UUID,
    types::JSON,
    types::JSONB,
    types::DATE,
    types::TIMESTAMP,
    types::TIMESTAMPTZ,
    types::INTERVAL,
    25,
    1000,
    1001,
    1007,
    1009,
    1185,
    2951,
];

fn shape(oids: &[Oid], binary: bool) -> RowShape {
    let column = |oid: &Oid| {
        let kind = Type::built_in(*oid).unwrap_or_else(|| Type::unknown(*oid));
        ("column".to_owned(), kind)
    };
    RowShape::new(oids.iter().map(column).collect(), binary)
}

fn row(values: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut out = BytesMut::new();
    out.put_u16(values.len() as u16);
    for value in values {
        match value {
            None => out.put_i32(-1),
            Some(bytes) => {
                out.put_i32(bytes.len() as i32);
                out.put_slice(bytes);
            }
        }
    }
    out.to_vec()
}

fn hear(replies: &mut impl Replies, messages: &[(usize, Vec<u8>)]) {
    for (tag, body) in messages {
        if replies.message(TAGS[*tag], body) == Err(Malformed) {
            return;
        }
    }
}

/// Bytes that occur in the text forms of values.
fn written() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..24),
        "[{}\",\\\\a0NUL :+.TZ-]{0,24}".prop_map(String::into_bytes),
        "[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{0,7})?)?([+-][0-9]{0,2})?"
            .prop_map(String::into_bytes),
        "\\\\x[0-9a-g]{0,9}".prop_map(String::into_bytes),
    ]
}

proptest! {
    #![proptest_config(crate::proptest_config::with_at_least(4_000))]

    #[test]
    fn any_messages_are_an_answer_or_malformed(
        oids in vec(vec(prop::sample::select(&TYPES[..]), 0..4), 0..4),
        binary in any::<bool>(),
        messages in vec((0..TAGS.len(), vec(prop_oneof![any::<u8>(), Just(0)], 0..40)), 0..12),
    ) {
        let shapes: Vec<RowShape> = oids.iter().map(|oids| shape(oids, binary)).collect();
        hear(&mut Results::new(shapes.clone()), &messages);
        hear(&mut Descriptions::default(), &messages);
        for shape in shapes {
            hear(&mut Chunk::first(shape.clone(), 10), &messages);
            hear(&mut Chunk::next(shape, 10), &messages);
        }
    }

    #[test]
    fn any_value_of_any_type_is_read_or_malformed(
        oid in prop::sample::select(&TYPES[..]),
        binary in any::<bool>(),
        value in written(),
    ) {
        let _ = shape(&[oid], binary).decode(&row(&[Some(value)]));
    }

    #[test]
    fn a_bit_that_is_flipped_or_an_end_that_is_cut_off_does_no_harm(
        oids in vec(prop::sample::select(&TYPES[..]), 1..5),
        binary in any::<bool>(),
        values in vec(prop::option::of(written()), 1..5),
        place in any::<prop::sample::Index>(),
        bit in 0..8,
        cut in any::<bool>(),
    ) {
        let mut body = row(&values);
        let place = place.index(body.len());
        match cut {
            true => body.truncate(place),
            false => body[place] ^= 1_u8 << bit,
        }
        let read = shape(&oids, binary).decode(&body);
        prop_assert!(!cut || read.is_err());
    }

    #[test]
    fn any_failure_is_an_error_or_malformed(
        fields in vec(("[SVCMDHnWxyz]", "[A-Za-z0-9\" :,]{0,30}"), 0..8),
        end in vec(any::<u8>(), 0..6),
    ) {
        let mut body: Vec<u8> = fields
            .iter()
            .flat_map(|(tag, text)| [tag.as_bytes(), text.as_bytes(), &[0]].concat())
            .collect();
        body.extend(end);
        if let Ok(failure) = ServerFailure::read(&body) {
            let _ = failure.clone().into_error("SELECT 1").to_string();
            let _ = failure.into_connect_error("target").to_string();
        }
        let _ = CancelKey::read(&body);
    }

    #[test]
    fn any_notification_is_read_or_malformed(body in vec(prop_oneof![any::<u8>(), Just(0)], 0..30)) {
        let mut queue = VecDeque::new();
        let _ = super::listener::Listening::onto(&mut queue).notified(&body);
        prop_assert!(queue.len() <= 1);
    }

    #[test]
    fn as_much_is_drained_as_is_awaited(ready in 1_usize..5, others in vec(0..TAGS.len(), 0..8)) {
        let mut drain = Drain { ready };
        let mut left = ready;
        for tag in others.iter().map(|at| TAGS[*at]).chain([tag::READY_FOR_QUERY_TAG; 5]) {
            left -= usize::from(tag == tag::READY_FOR_QUERY_TAG);
            prop_assert_eq!(drain.message(tag, b""), Ok(left == 0));
            if left == 0 {
                break;
            }
        }
    }
}

#[test]
fn a_row_that_is_sound_is_read() {
    let body = row(&[
        Some(7_i32.to_be_bytes().to_vec()),
        Some(b"ok".to_vec()),
        None,
    ]);
    let read = shape(&[types::INT4, 25, 25], true).decode(&body);
    let expected = vec![Value::Int(7), Value::Text("ok".to_owned()), Value::Null];
    assert_eq!(read, Ok(expected));
}
