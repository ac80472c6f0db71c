use std::borrow::Cow;

use super::frame;
use super::method::{self, Incoming};
use super::wire::Reader;
use super::{Field, FieldTable, Properties, outgoing};

pub(super) fn every_type() -> FieldTable<'static> {
    FieldTable::new()
        .with("void", Field::Void)
        .with("bool", true)
        .with("i8", Field::I8(-8))
        .with("u8", Field::U8(200))
        .with("i16", Field::I16(-300))
        .with("u16", Field::U16(60_000))
        .with("i32", -70_000)
        .with("u32", Field::U32(4_000_000_000))
        .with("i64", i64::MIN)
        .with("f32", Field::F32(1.5))
        .with("f64", -2.25)
        .with(
            "decimal",
            Field::Decimal {
                scale: 2,
                value: -314,
            },
        )
        .with("string", "grüße")
        .with("bytes", Field::Bytes(Cow::Borrowed(&[0, 255, 206])))
        .with(
            "array",
            Field::Array(vec![1.into(), "two".into(), Field::Array(vec![])]),
        )
        .with("timestamp", Field::Timestamp(1_700_000_000))
        .with("table", FieldTable::new().with("inner", false))
}

pub(super) fn every_property() -> Properties<'static> {
    Properties {
        content_type: Some("application/json".into()),
        content_encoding: Some("utf-8".into()),
        headers: every_type(),
        delivery_mode: Some(2),
        priority: Some(9),
        correlation_id: Some("c".into()),
        reply_to: Some("amq.rabbitmq.reply-to".into()),
        expiration: Some("60000".into()),
        message_id: Some("m".into()),
        timestamp: Some(7),
        kind: Some("App\\Stored".into()),
        user_id: Some("guest".into()),
        app_id: Some("weft".into()),
    }
}

fn put_content(out: &mut Vec<u8>, channel: u16, properties: &Properties<'_>, body: &[u8]) {
    frame::put_header(out, channel, properties, body.len());
    frame::put_body(out, channel, body, 4096);
}

#[test]
fn a_field_table_of_every_type_comes_back_as_it_was() {
    let mut out = Vec::new();
    every_type().encode(&mut out);
    let mut reader = Reader::new(&out);
    assert_eq!(FieldTable::decode(&mut reader), Ok(every_type()));
    assert!(reader.is_empty());
}

#[test]
fn properties_come_back_as_they_were() {
    for properties in [Properties::default(), every_property()] {
        let mut out = Vec::new();
        properties.encode(&mut out);
        assert_eq!(Properties::decode(&out), Ok(properties));
    }
}

#[test]
fn a_table_nested_too_deep_is_refused() {
    let mut table = FieldTable::new();
    for _ in 0..100 {
        table = FieldTable::new().with("t", table);
    }
    let mut out = Vec::new();
    table.encode(&mut out);
    assert!(FieldTable::decode(&mut Reader::new(&out)).is_err());
}

#[test]
fn a_short_string_that_is_not_utf8_is_replaced_not_refused() {
    let bytes = [3, b'a', 0xFF, b'b'];
    assert_eq!(Reader::new(&bytes).short_string(), Ok("a\u{FFFD}b".into()));
}

#[test]
fn a_frame_is_parsed_only_when_it_is_whole() {
    let mut out = Vec::new();
    frame::put(&mut out, frame::BODY, 3, |out| {
        out.extend_from_slice(b"hello")
    });
    for cut in 0..out.len() {
        assert_eq!(frame::parse(&out[..cut], 4096), Ok(None));
    }
    let parsed = frame::parse(&out, 4096).unwrap().unwrap();
    assert_eq!(
        (parsed.kind, parsed.channel, parsed.payload),
        (frame::BODY, 3, &b"hello"[..])
    );
    assert_eq!(parsed.len(), out.len());
}

#[test]
fn a_frame_larger_than_agreed_or_without_its_end_is_refused() {
    let mut out = Vec::new();
    frame::put(&mut out, frame::BODY, 1, |out| {
        out.extend_from_slice(&[0; 5000])
    });
    assert!(frame::parse(&out[..7], 4096).is_err());
    let last = out.len() - 1;
    out[last] = 0;
    assert!(frame::parse(&out, 8192).is_err());
}

#[test]
fn a_body_is_split_to_fit_the_frame_size_and_put_together_again() {
    let body: Vec<u8> = (0..10_000u32).map(|i| i as u8).collect();
    let mut out = Vec::new();
    method::put_publish(&mut out, 5, "ex", "key", true);
    put_content(&mut out, 5, &every_property(), &body);
    let parts = outgoing::parts(&out).unwrap();
    assert_eq!(
        (parts.exchange, parts.routing_key),
        (&b"ex"[..], &b"key"[..])
    );
    assert_eq!(Properties::decode(parts.properties), Ok(every_property()));
    assert_eq!(parts.body, body);

    let mut smaller = Vec::new();
    outgoing::put_again(&mut smaller, &out, 1024);
    assert_eq!(outgoing::parts(&smaller).unwrap().body, body);
    let mut at = 0;
    while let Some(part) = frame::parse(&smaller[at..], 1024).unwrap() {
        at += part.len();
    }
    assert_eq!(at, smaller.len());
}

#[test]
fn messages_are_found_between_other_methods() {
    let mut out = method::bare(1, method::CHANNEL_OPEN);
    let start = out.len();
    method::put_publish(&mut out, 2, "", "queue", false);
    put_content(&mut out, 2, &Properties::default(), b"body");
    let end = out.len();
    method::put_ack(&mut out, 3, 9, true);
    method::put_publish(&mut out, 4, "", "empty", false);
    put_content(&mut out, 4, &Properties::default(), b"");
    let found: Vec<_> = outgoing::messages(&out).collect();
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].channel, found[0].range.clone()), (2, start..end));
    assert_eq!((found[1].channel, found[1].range.end), (4, out.len()));
    let cut = &out[..end - 1];
    assert_eq!(outgoing::messages(cut).count(), 0);
}

#[test]
fn deliver_names_where_the_exchange_starts() {
    let mut out = Vec::new();
    method::put(&mut out, 1, method::DELIVER, |out| {
        super::wire::put_short(out, "tag");
        super::wire::put_u64(out, 77);
        out.push(1);
        super::wire::put_short(out, "ex");
        super::wire::put_short(out, "key");
    });
    let parsed = frame::parse(&out, 4096).unwrap().unwrap();
    let expected = Incoming::Deliver {
        tag: 77,
        redelivered: true,
        exchange_at: 17,
    };
    assert_eq!(Incoming::decode(parsed.payload), Ok(expected));
    assert_eq!(parsed.payload[17..20], *b"\x02ex");
}
