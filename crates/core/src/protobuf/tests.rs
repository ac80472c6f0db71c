use super::json::{from_json, to_json};
use super::wire::{put_delimited, put_varint};
use super::*;
use crate::fuzz::Random;

/// Descriptors are messages too: this writes those of the tests.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn text(mut self, number: u32, text: &str) -> Self {
        put_varint(&mut self.0, u64::from(number) << 3 | 2);
        put_delimited(&mut self.0, text.as_bytes());
        self
    }

    fn nested(mut self, number: u32, nested: Writer) -> Self {
        put_varint(&mut self.0, u64::from(number) << 3 | 2);
        put_delimited(&mut self.0, &nested.0);
        self
    }

    fn number(mut self, number: u32, value: u64) -> Self {
        put_varint(&mut self.0, u64::from(number) << 3);
        put_varint(&mut self.0, value);
        self
    }
}

fn field(name: &str, number: u64, label: u64, kind: u64, type_name: &str) -> Writer {
    let field = Writer::default().text(1, name).number(3, number);
    field.number(4, label).number(5, kind).text(6, type_name)
}

/// A message with a field of every shape, among them itself.
pub(super) fn schema() -> (Schema, LayoutId) {
    let entry = Writer::default()
        .text(1, "NamedEntry")
        .nested(2, field("key", 1, 1, 9, ""))
        .nested(2, field("value", 2, 1, 11, ".t.All"))
        .nested(7, Writer::default().number(7, 1));
    let all = Writer::default()
        .text(1, "All")
        .nested(2, field("number", 1, 1, 5, ""))
        .nested(2, field("text", 2, 1, 9, ""))
        .nested(2, field("child", 3, 1, 11, ".t.All"))
        .nested(2, field("children", 4, 3, 11, ".t.All"))
        .nested(2, field("numbers", 5, 3, 4, ""))
        .nested(2, field("named", 6, 3, 11, ".t.All.NamedEntry"))
        .nested(2, field("colour", 7, 1, 14, ".t.Colour"))
        .nested(2, field("ratio", 8, 1, 1, ""))
        .nested(2, field("raw", 1000, 1, 12, ""))
        .nested(3, entry);
    let colour = Writer::default()
        .text(1, "Colour")
        .nested(2, Writer::default().text(1, "RED").number(2, 0));
    let file = Writer::default()
        .text(1, "t.proto")
        .text(2, "t")
        .nested(4, all)
        .nested(5, colour)
        .text(12, "proto3");
    let mut schema = Schema::default();
    schema.add(&file.0).unwrap();
    let id = schema.message("t.All").unwrap();
    (schema, id)
}

fn outcome(bytes: &[u8]) -> Result<Tree<'_>, DecodeError> {
    let (schema, id) = schema();
    Tree::decode(&schema, id, bytes)
}

fn nested(depth: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..depth {
        let mut outer = vec![0x1A];
        put_delimited(&mut outer, &bytes);
        bytes = outer;
    }
    bytes
}

#[test]
fn a_message_may_be_nested_99_times_and_not_100() {
    assert!(outcome(&nested(99)).is_ok());
    assert_eq!(
        outcome(&nested(100)).unwrap_err(),
        DecodeError::Wire(WireError::TooDeep(100))
    );
}

#[test]
fn groups_that_are_not_known_are_nested_no_deeper_either() {
    let groups = |depth: usize| [vec![0x53; depth], vec![0x54; depth]].concat();
    assert!(outcome(&groups(99)).is_ok());
    assert_eq!(
        outcome(&groups(100)).unwrap_err(),
        DecodeError::Wire(WireError::TooDeep(100))
    );
}

#[test]
fn a_length_beyond_the_end_is_refused_before_anything_is_reserved() {
    let error = outcome(b"\x12\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7Fx").unwrap_err();
    assert_eq!(
        error.to_string(),
        "field text (2) of t.All: a length of 9223372036854775807 bytes is announced where 1 are left"
    );
}

#[test]
fn a_varint_has_at_most_ten_bytes() {
    assert!(outcome(b"\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01").is_ok());
    let error = outcome(b"\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01").unwrap_err();
    assert!(
        error.to_string().contains("longer than 10 bytes"),
        "{error}"
    );
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    let error = outcome(b"\x12\x01\xFF").unwrap_err();
    assert!(matches!(
        error,
        DecodeError::Field {
            problem: WireError::Utf8,
            ..
        }
    ));
}

#[test]
fn groups_must_end_as_they_started() {
    assert_eq!(
        outcome(b"\x53").unwrap_err(),
        DecodeError::Wire(WireError::UnfinishedGroup(10))
    );
    assert_eq!(
        outcome(b"\x54").unwrap_err(),
        DecodeError::Wire(WireError::UnexpectedGroupEnd)
    );
    assert_eq!(
        outcome(b"\x53\x5C").unwrap_err(),
        DecodeError::Wire(WireError::UnexpectedGroupEnd)
    );
}

#[test]
fn field_number_zero_and_unknown_wire_types_are_refused() {
    assert_eq!(
        outcome(b"\x00\x00").unwrap_err(),
        DecodeError::Wire(WireError::FieldNumber)
    );
    assert_eq!(
        outcome(b"\x56\x00").unwrap_err(),
        DecodeError::Wire(WireError::WireType(6))
    );
}

#[test]
fn a_list_is_read_packed_and_not_packed() {
    let tree = outcome(b"\x2A\x02\x01\x02\x28\x03").unwrap();
    let expected = vec![Leaf::Int(1), Leaf::Int(2), Leaf::Int(3)];
    assert!(matches!(&tree.node(0).unwrap().slots[4], Slot::List(list) if *list == expected));
}

#[test]
fn a_message_that_comes_twice_is_merged() {
    let tree = outcome(b"\x1A\x02\x08\x05\x1A\x03\x12\x01x").unwrap();
    let Slot::One(Leaf::Message(child)) = tree.node(0).unwrap().slots[2] else {
        panic!("no child");
    };
    let child = &tree.node(child).unwrap().slots;
    assert!(matches!(child[0], Slot::One(Leaf::Int(5))));
    assert!(matches!(&child[1], Slot::One(Leaf::Text(b"x"))));
}

#[test]
fn a_refused_file_leaves_nothing_behind() {
    let mut schema = Schema::default();
    let unknown = Writer::default().text(1, "u.proto").nested(
        4,
        Writer::default()
            .text(1, "A")
            .nested(2, field("b", 1, 1, 11, ".B")),
    );
    let error = schema.add(&unknown.0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "u.proto uses the type B in A.b, which is not known"
    );
    assert!(schema.message("A").is_none() && !schema.contains_file("u.proto"));
}

#[test]
fn a_file_is_the_same_only_with_the_same_bytes() {
    let (mut schema, _) = schema();
    let other = Writer::default().text(1, "t.proto");
    assert!(matches!(
        schema.add(&other.0),
        Err(SchemaError::FileChanged { .. })
    ));
    let duplicate = Writer::default()
        .text(1, "v.proto")
        .text(2, "t")
        .nested(4, Writer::default().text(1, "All"));
    let error = schema.add(&duplicate.0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "t.All is defined in v.proto and in t.proto"
    );
}

/// A message whose only field is any message.
fn box_schema() -> (Schema, LayoutId) {
    let any = Writer::default()
        .text(1, "Any")
        .nested(2, field("type_url", 1, 1, 9, ""))
        .nested(2, field("value", 2, 1, 12, ""));
    let any = Writer::default()
        .text(1, "any.proto")
        .text(2, "google.protobuf")
        .nested(4, any)
        .text(12, "proto3");
    let boxed = Writer::default()
        .text(1, "Box")
        .nested(2, field("any", 1, 1, 11, ".google.protobuf.Any"))
        .nested(2, field("text", 2, 1, 9, ""));
    let boxed = Writer::default()
        .text(1, "box.proto")
        .text(2, "t")
        .text(3, "any.proto")
        .nested(4, boxed)
        .text(12, "proto3");
    let mut schema = Schema::default();
    schema.add(&any.0).unwrap();
    schema.add(&boxed.0).unwrap();
    let id = schema.message("t.Box").unwrap();
    (schema, id)
}

fn boxes(depth: usize, text: &str) -> String {
    let open = r#"{"@type":"x/t.Box","any":"#.repeat(depth);
    let close = "}".repeat(depth);
    format!(r#"{{"any":{open}{{"@type":"x/t.Box","text":"{text}"}}{close}}}"#)
}

#[test]
fn messages_in_messages_of_any_type_are_read_and_written_as_deep_as_others() {
    let (schema, id) = box_schema();
    let json = boxes(40, "deep");
    let bytes = from_json(&schema, id, json.as_bytes(), false).unwrap();
    let printed = to_json(&schema, id, &bytes).unwrap();
    assert_eq!(printed, json);
    let error = from_json(&schema, id, boxes(110, "").as_bytes(), false).unwrap_err();
    assert_eq!(error.problem, "nested deeper than 100 levels");
    let error = from_json(&schema, id, boxes(10_000, "").as_bytes(), false).unwrap_err();
    assert!(error.problem.contains("200 lists and objects"), "{error}");
}

#[test]
fn messages_are_decoded_no_deeper_than_100_levels_in_each_other() {
    let (schema, id) = tree_schema();
    let nested = |levels: usize| {
        (1..levels).fold(Vec::new(), |inner, _| {
            let mut outer = Vec::new();
            put_varint(&mut outer, 1 << 3 | 2);
            put_delimited(&mut outer, &inner);
            outer
        })
    };
    assert!(Tree::decode(&schema, id, &nested(100)).is_ok());
    for levels in [101, 10_000] {
        let error = Tree::decode(&schema, id, &nested(levels)).unwrap_err();
        assert!(error.to_string().contains("100 levels"), "{error}");
    }
}

/// A message whose only field is one like it.
fn tree_schema() -> (Schema, LayoutId) {
    let node = Writer::default()
        .text(1, "Node")
        .nested(2, field("child", 1, 1, 11, ".t.Node"));
    let file = Writer::default()
        .text(1, "node.proto")
        .text(2, "t")
        .nested(4, node)
        .text(12, "proto3");
    let mut schema = Schema::default();
    schema.add(&file.0).unwrap();
    let id = schema.message("t.Node").unwrap();
    (schema, id)
}

/// `t.Holder` has fields of well-known types, and a group.
fn holder_schema() -> Schema {
    let named = |name| Writer::default().text(1, name);
    let well_known = named("well_known.proto")
        .text(2, "google.protobuf")
        .nested(4, named("Struct"))
        .nested(4, named("Value"))
        .nested(4, named("Timestamp"))
        .nested(
            4,
            named("FloatValue").nested(2, field("value", 1, 1, 2, "")),
        )
        .nested(
            4,
            named("Int64Value").nested(2, field("value", 1, 1, 3, "")),
        )
        .nested(
            4,
            named("UInt64Value").nested(2, field("value", 1, 1, 4, "")),
        );
    let by_name = named("ByNameEntry")
        .nested(2, field("key", 1, 1, 9, ""))
        .nested(2, field("value", 2, 1, 11, ".google.protobuf.UInt64Value"))
        .nested(7, Writer::default().number(7, 1));
    let holder = named("Holder")
        .nested(2, field("fields", 1, 1, 11, ".google.protobuf.Struct"))
        .nested(2, field("value", 2, 1, 11, ".google.protobuf.Value"))
        .nested(2, field("group", 3, 1, 10, ".t.Holder"))
        .nested(2, field("times", 4, 3, 11, ".google.protobuf.Timestamp"))
        .nested(2, field("signed", 5, 1, 11, ".google.protobuf.Int64Value"))
        .nested(
            2,
            field("unsigned", 6, 3, 11, ".google.protobuf.UInt64Value"),
        )
        .nested(2, field("by_name", 7, 3, 11, ".t.Holder.ByNameEntry"))
        .nested(2, field("real", 8, 1, 11, ".google.protobuf.FloatValue"))
        .nested(2, field("text", 9, 1, 9, ""))
        .nested(3, by_name);
    let holder = named("holder.proto")
        .text(2, "t")
        .text(3, "well_known.proto")
        .nested(4, holder);
    let mut schema = Schema::default();
    schema.add(&well_known.0).unwrap();
    schema.add(&holder.0).unwrap();
    schema
}

/// A message of `levels` in each other, each of which is `around` the one inside it.
fn levels(levels: usize, inside: &[u8], around: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    (0..levels).fold(inside.to_vec(), |inside, _| around(&inside))
}

fn delimited(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    put_delimited(&mut out, bytes);
    out
}

/// What nests, in a message of which schema, how often at most, its bytes, and its JSON around and inside.
type Nesting<'a> = (
    &'static str,
    &'a Schema,
    LayoutId,
    usize,
    &'a dyn Fn(usize) -> Vec<u8>,
    [&'static str; 3],
);

#[test]
fn every_message_of_the_wire_counts_as_a_level_in_bytes_and_in_json() {
    let (all, all_id) = schema();
    let holder = holder_schema();
    let holder_id = holder.message("t.Holder").unwrap();
    let entry = |tag: u8, value: &[u8]| {
        let field = [&b"\x0A\x01k"[..], &delimited(0x12, value)].concat();
        delimited(tag, &field)
    };
    let cases: [Nesting<'_>; 6] = [
        (
            "messages",
            &all,
            all_id,
            99,
            &|count| levels(count, b"", |inside| delimited(0x1A, inside)),
            ["{\"child\":", "{}", "}"],
        ),
        (
            "lists of messages",
            &all,
            all_id,
            99,
            &|count| levels(count, b"", |inside| delimited(0x22, inside)),
            ["{\"children\":[", "{}", "]}"],
        ),
        (
            "maps",
            &all,
            all_id,
            49,
            &|count| levels(count, b"", |inside| entry(0x32, inside)),
            ["{\"named\":{\"k\":", "{}", "}}"],
        ),
        (
            "groups",
            &holder,
            holder_id,
            99,
            &|count| levels(count, b"", |inside| [&[0x1B], inside, &[0x1C]].concat()),
            ["{\"group\":", "{}", "}"],
        ),
        (
            "structs",
            &holder,
            holder.message("google.protobuf.Struct").unwrap(),
            32,
            &|count| {
                levels(count, &entry(0x0A, b"\x20\x01"), |inside| {
                    entry(0x0A, &delimited(0x2A, inside))
                })
            },
            ["{\"k\":", "{\"k\":true}", "}"],
        ),
        (
            "lists of values",
            &holder,
            holder.message("google.protobuf.Value").unwrap(),
            49,
            &|count| {
                levels(count, b"\x20\x01", |inside| {
                    delimited(0x32, &delimited(0x0A, inside))
                })
            },
            ["[", "true", "]"],
        ),
    ];
    for (what, schema, id, deepest, bytes, [open, inside, close]) in cases {
        let json = |count: usize| open.repeat(count) + inside + &close.repeat(count);
        for count in [deepest - 1, deepest] {
            let printed = to_json(schema, id, &bytes(count)).unwrap();
            assert_eq!(printed, json(count), "{what}");
            let read = from_json(schema, id, printed.as_bytes(), false).unwrap();
            assert_eq!(read, bytes(count), "{what}");
        }
        let error = to_json(schema, id, &bytes(deepest + 1)).unwrap_err();
        assert!(error.problem.contains("100 levels"), "{what}: {error}");
        let text = json(deepest + 1);
        let error = from_json(schema, id, text.as_bytes(), false).unwrap_err();
        let problem = &error.problem;
        assert!(problem.starts_with("nested deeper than"), "{what}: {error}");
    }
}

#[test]
fn the_json_of_every_float_is_read_back() {
    let schema = holder_schema();
    let id = schema.message("google.protobuf.FloatValue").unwrap();
    let edges = [
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        f32::EPSILON,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.0,
        -0.0,
        f32::from_bits(1),
        f32::from_bits(0x007F_FFFF),
        f32::from_bits(0x7F7F_FFFE),
        16_777_217.0,
    ];
    let mut random = Random::new(7);
    let numbers = std::iter::repeat_with(|| f32::from_bits(random.next() as u32));
    for number in edges.into_iter().chain(numbers.take(100_000)) {
        if number.is_nan() {
            continue;
        }
        let bytes = [&[0x0D], &number.to_le_bytes()[..]].concat();
        let json = to_json(&schema, id, &bytes).unwrap();
        let read = from_json(&schema, id, json.as_bytes(), false);
        assert_eq!(read.unwrap(), bytes, "{json}");
    }
    for large in ["3.4028236e38", "-3.4028236e38", "1e39", "\"1e39\""] {
        let error = from_json(&schema, id, large.as_bytes(), false).unwrap_err();
        assert!(error.problem.contains("too large for a float"), "{error}");
    }
}

#[test]
fn the_json_of_a_wrapper_is_that_of_its_value_wherever_it_stands() {
    let schema = holder_schema();
    let id = schema.message("t.Holder").unwrap();
    let number = |number: i64| {
        let mut bytes = vec![0x08];
        put_varint(&mut bytes, number as u64);
        bytes
    };
    let tenth = [&[0x0D], &0.1_f32.to_le_bytes()[..]].concat();
    let entry = [&b"\x0A\x01k"[..], &delimited(0x12, &number(-1))].concat();
    let bytes = [
        delimited(5 << 3 | 2, &number(9_007_199_254_740_993)),
        delimited(6 << 3 | 2, &number(-1)),
        delimited(6 << 3 | 2, &number(1)),
        delimited(7 << 3 | 2, &entry),
        delimited(8 << 3 | 2, &tenth),
    ]
    .concat();
    let json = to_json(&schema, id, &bytes).unwrap();
    assert_eq!(
        json,
        r#"{"signed":"9007199254740993","unsigned":["18446744073709551615","1"],"byName":{"k":"18446744073709551615"},"real":0.1}"#
    );
    assert_eq!(
        from_json(&schema, id, json.as_bytes(), false).unwrap(),
        bytes
    );
}

#[test]
fn text_of_proto2_that_is_not_utf8_has_no_json() {
    let schema = holder_schema();
    let id = schema.message("t.Holder").unwrap();
    let error = to_json(&schema, id, b"\x4A\x03ab\xFF").unwrap_err();
    assert_eq!(
        error.to_string(),
        "at $.text: a string that is not UTF-8 from its byte 2 on; JSON has only UTF-8, declare the field as bytes"
    );
}

#[test]
fn a_timestamp_with_nanoseconds_out_of_range_is_refused_in_bytes_and_in_json() {
    let schema = holder_schema();
    let holder = schema.message("t.Holder").unwrap();
    let timestamp = schema.message("google.protobuf.Timestamp").unwrap();
    for nanos in [-1_i32, i32::MIN, 1_000_000_000, i32::MAX] {
        let mut time = vec![0x10];
        put_varint(&mut time, i64::from(nanos) as u64);
        let why =
            format!("a google.protobuf.Timestamp has {nanos} nanoseconds, expected 0 to 999999999");
        let field = delimited(0x22, &time);
        let error = Tree::decode(&schema, holder, &field).unwrap_err();
        let named = format!("field times (4) of t.Holder: {why}");
        assert_eq!(error.to_string(), named);
        let error = to_json(&schema, holder, &field).unwrap_err();
        assert_eq!(error.problem, named);
        let error = to_json(&schema, timestamp, &time).unwrap_err();
        assert_eq!(error.problem, why);
    }
    let last = [&b"\x10"[..], b"\xFF\x93\xEB\xDC\x03"].concat();
    assert!(Tree::decode(&schema, holder, &delimited(0x22, &last)).is_ok());
    let json = to_json(&schema, timestamp, &last).unwrap();
    assert_eq!(json, "\"1970-01-01T00:00:00.999999999Z\"");
}

#[test]
fn a_message_whose_values_take_too_much_memory_is_refused() {
    let (all, all_id) = schema();
    let holder = holder_schema();
    let holder_id = holder.message("t.Holder").unwrap();
    let decode = |schema: &Schema, id, bytes: &[u8], memory: usize| {
        let limits = Limits {
            memory: Budget::new(memory),
            ..Limits::default()
        };
        Tree::decode_within(schema, id, bytes, limits).map(drop)
    };
    let many = |one: &[u8]| one.repeat(1_000);
    // Bytes of a value of each on the wire, and at least that much in memory.
    let cases: [(&str, &Schema, LayoutId, Vec<u8>, usize); 8] = [
        ("messages", &all, all_id, many(b"\x22\0"), 100),
        ("numbers", &all, all_id, many(b"\x28\x01"), 16),
        ("packed", &all, all_id, delimited(0x2A, &many(b"\x01")), 16),
        ("entries", &all, all_id, many(b"\x32\0"), 100),
        ("times", &holder, holder_id, many(b"\x22\0"), 400),
        (
            "list",
            &holder,
            holder_id,
            delimited(0x12, &delimited(0x32, &many(b"\x0A\0"))),
            40,
        ),
        (
            "struct",
            &holder,
            holder_id,
            delimited(0x0A, &many(b"\x0A\0")),
            60,
        ),
        ("unknown", &all, all_id, many(b"\x58\x01"), 16),
    ];
    for (what, schema, id, bytes, each) in cases {
        let error = decode(schema, id, &bytes, 1_000 * each).unwrap_err();
        assert!(error.is_too_large(), "{what}: {error}");
        let limit = format!("more than {} bytes of memory", 1_000 * each);
        assert!(error.to_string().contains(&limit), "{what}: {error}");
        decode(schema, id, &bytes, 4_000 * each).unwrap();
        decode(schema, id, &bytes, usize::MAX).unwrap();
    }
    let text = delimited(0x12, &[b'a'; 1_000]);
    assert!(decode(&all, all_id, &text, 1_000).is_err());
    assert!(decode(&all, all_id, &text, 1_500).is_ok());
}
