//! The memory that reading and printing JSON allocates, however deep the messages are nested.

#![allow(unsafe_code, reason = "replaces the allocator")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use weft_core::protobuf::{Schema, json};

/// Adds up the bytes that a thread allocates.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is the system's allocator, and counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATED.try_with(|bytes| bytes.set(bytes.get() + layout.size()));
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn text(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(number << 3 | 2);
    out.push(u8::try_from(bytes.len()).unwrap());
    out.extend_from_slice(bytes);
}

/// A field of a message: name, number, type and the name of a message (`FieldDescriptorProto`).
fn field(name: &str, number: u8, kind: u8, message: &str) -> Vec<u8> {
    let mut out = Vec::new();
    text(&mut out, 1, name.as_bytes());
    out.extend_from_slice(&[3 << 3, number, 4 << 3, 1, 5 << 3, kind]);
    if !message.is_empty() {
        text(&mut out, 6, message.as_bytes());
    }
    out
}

/// A file with one message (`FileDescriptorProto`).
fn file(name: &str, package: &str, dependency: &str, message: &str, fields: &[Vec<u8>]) -> Vec<u8> {
    let mut body = Vec::new();
    text(&mut body, 1, message.as_bytes());
    for field in fields {
        text(&mut body, 2, field);
    }
    let mut out = Vec::new();
    text(&mut out, 1, name.as_bytes());
    text(&mut out, 2, package.as_bytes());
    if !dependency.is_empty() {
        text(&mut out, 3, dependency.as_bytes());
    }
    text(&mut out, 4, &body);
    text(&mut out, 12, b"proto3");
    out
}

fn schema() -> Schema {
    let any = [field("type_url", 1, 9, ""), field("value", 2, 12, "")];
    let boxed = [
        field("any", 1, 11, ".google.protobuf.Any"),
        field("text", 2, 9, ""),
    ];
    let mut schema = Schema::default();
    let any = file("any.proto", "google.protobuf", "", "Any", &any);
    schema.add(&any).unwrap();
    let boxed = file("box.proto", "t", "any.proto", "Box", &boxed);
    schema.add(&boxed).unwrap();
    schema
}

/// JSON of a message with a text of `size` bytes, that many levels deep.
fn nested(levels: usize, size: usize) -> String {
    let open = r#"{"@type":"x/t.Box","any":"#.repeat(levels);
    let close = "}".repeat(levels);
    let text = "x".repeat(size);
    format!(r#"{{"any":{open}{{"@type":"x/t.Box","text":"{text}"}}{close}}}"#)
}

/// The result of `work`, and the bytes that it allocates.
fn counted<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATED.get();
    let result = work();
    (result, ALLOCATED.get() - before)
}

#[test]
fn messages_of_any_type_in_each_other_take_no_memory_for_each_level() {
    const SIZE: usize = 1 << 20;
    let schema = schema();
    let id = schema.message("t.Box").unwrap();
    let [flat, deep] = [1, 40].map(|levels| {
        let json = nested(levels, SIZE);
        let (bytes, reading) =
            counted(|| json::from_json(&schema, id, json.as_bytes(), false).unwrap());
        let (printed, printing) = counted(|| json::to_json(&schema, id, &bytes).unwrap());
        assert_eq!(printed, json);
        [reading, printing]
    });
    for (what, (flat, deep)) in ["reading", "printing"]
        .iter()
        .zip(flat.into_iter().zip(deep))
    {
        assert!(
            deep < flat + SIZE,
            "{what}: {flat} bytes for 1 level, {deep} for 40"
        );
    }
}
