//! Converts an encoded message to JSON: fields in the order of their numbers, unset fields left out.

use std::collections::HashMap;
use std::hash::Hash;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::time::{print_duration, print_timestamp};
use super::{JsonError, Result, enter, problem};
use crate::protobuf::decode::{timestamp, wrapper};
use crate::protobuf::layout::{Cardinality, Field, Kind, LayoutId, Presence, WellKnown};
use crate::protobuf::schema::Schema;
use crate::protobuf::tree::{Leaf, Node, Slot, Tree};
use crate::protobuf::{Budget, Depth, Dynamic, Limits, Scalar, WireError};

/// # Errors
/// [`JsonError`] if the bytes are not such a message, or hold values that JSON cannot express.
pub fn to_json(schema: &Schema, layout: LayoutId, bytes: &[u8]) -> Result<String> {
    let mut printer = Printer {
        schema,
        out: String::new(),
    };
    printer.message(layout, bytes, Depth::OUTERMOST)?;
    Ok(printer.out)
}

struct Printer<'s> {
    schema: &'s Schema,
    out: String,
}

impl Printer<'_> {
    /// `depth` is inside the message.
    fn message(&mut self, id: LayoutId, bytes: &[u8], depth: Depth) -> Result<()> {
        let name = self
            .schema
            .layout(id)
            .map_or("", |layout| layout.name.as_str());
        let wire = |error: WireError| JsonError::new(error.to_string());
        let mut memory = Budget::UNLIMITED;
        match WellKnown::of(name) {
            Some(WellKnown::Timestamp) => {
                self.leaf_of(timestamp(bytes, depth).map_err(wire)?, Kind::Int64)
            }
            Some(WellKnown::Wrapper(kind)) => {
                self.leaf_of(wrapper(kind, bytes, depth).map_err(wire)?, kind)
            }
            Some(WellKnown::Struct) => {
                self.dynamic(&Dynamic::structure(bytes, depth, &mut memory).map_err(wire)?)
            }
            Some(WellKnown::ListValue) => {
                self.dynamic(&Dynamic::list(bytes, depth, &mut memory).map_err(wire)?)
            }
            Some(WellKnown::Value) => {
                self.dynamic(&Dynamic::value(bytes, depth, &mut memory).map_err(wire)?)
            }
            None => self.node(&self.tree(id, bytes, depth)?, 0, depth),
        }
    }

    fn tree<'b>(&self, id: LayoutId, bytes: &'b [u8], depth: Depth) -> Result<Tree<'b>> {
        let limits = Limits {
            depth,
            ..Limits::default()
        };
        Tree::decode_within(self.schema, id, bytes, limits)
            .map_err(|error| JsonError::new(error.to_string()))
    }

    fn leaf_of(&mut self, value: Scalar<'_>, kind: Kind) -> Result<()> {
        self.leaf(&Tree::default(), kind, &value.into(), Depth::OUTERMOST)
    }

    /// `depth` is inside the message.
    fn node(&mut self, tree: &Tree<'_>, index: usize, depth: Depth) -> Result<()> {
        let Some(node) = tree.node(index) else {
            return Ok(());
        };
        let Some(layout) = self.schema.layout(node.layout) else {
            return Ok(());
        };
        match layout.name.as_str() {
            "google.protobuf.Duration" => {
                let text = print_duration(int(node, 0), int(node, 1) as i32)?;
                self.text(&text);
                return Ok(());
            }
            "google.protobuf.FieldMask" => return self.field_mask(node),
            "google.protobuf.Any" => return self.any(node, depth),
            _ => {}
        }
        self.out.push('{');
        let mut first = true;
        self.fields(tree, node, depth, &mut first)?;
        self.out.push('}');
        Ok(())
    }

    fn fields(
        &mut self,
        tree: &Tree<'_>,
        node: &Node<'_>,
        depth: Depth,
        first: &mut bool,
    ) -> Result<()> {
        let schema = self.schema;
        let Some(layout) = schema.layout(node.layout) else {
            return Ok(());
        };
        for (field, slot) in layout.fields.iter().zip(&node.slots) {
            if matches!(slot, Slot::Unset) || is_default(field, slot) {
                continue;
            }
            self.comma(first);
            self.text(&field.json_name);
            self.out.push(':');
            self.slot(tree, field, slot, depth)
                .map_err(|error| error.inside(&format!(".{}", field.json_name)))?;
        }
        Ok(())
    }

    fn slot(
        &mut self,
        tree: &Tree<'_>,
        field: &Field,
        slot: &Slot<'_>,
        depth: Depth,
    ) -> Result<()> {
        match slot {
            Slot::Unset => Ok(()),
            Slot::One(leaf) => self.leaf(tree, field.scalar_kind(), leaf, depth),
            Slot::List(leaves) => {
                self.out.push('[');
                let mut first = true;
                for leaf in leaves {
                    self.comma(&mut first);
                    self.leaf(tree, field.scalar_kind(), leaf, depth)?;
                }
                self.out.push(']');
                Ok(())
            }
            Slot::Map(entries) => {
                let Cardinality::Map(entry) = &field.cardinality else {
                    return Ok(());
                };
                let depth = enter(depth)?;
                self.out.push('{');
                let mut first = true;
                let keys = entries
                    .iter()
                    .map(|(key, _)| key_text(entry.key.kind, key))
                    .collect::<Result<Vec<_>>>()?;
                for (index, key) in last_of_each(keys) {
                    let Some((_, value)) = entries.get(index) else {
                        continue;
                    };
                    self.comma(&mut first);
                    self.text(&key);
                    self.out.push(':');
                    self.leaf(tree, entry.value.scalar_kind(), value, depth)?;
                }
                self.out.push('}');
                Ok(())
            }
        }
    }

    fn leaf(&mut self, tree: &Tree<'_>, kind: Kind, leaf: &Leaf<'_>, depth: Depth) -> Result<()> {
        match leaf {
            Leaf::Int(number) => self.int(kind, *number),
            Leaf::Float(number) => self.float(kind, *number),
            Leaf::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Leaf::Text(bytes) => self.text(utf8(bytes)?),
            Leaf::Bytes(bytes) => self.text(&STANDARD.encode(bytes)),
            Leaf::Enum(number) => self.enumeration(kind, *number),
            Leaf::Timestamp { seconds, nanos } => {
                let text = print_timestamp(*seconds, *nanos)?;
                self.text(&text);
            }
            Leaf::Dynamic(value) => return self.dynamic(value),
            Leaf::Message(index) => return self.node(tree, *index, enter(depth)?),
        }
        Ok(())
    }

    fn int(&mut self, kind: Kind, number: i64) {
        match kind {
            Kind::Uint64 | Kind::Fixed64 => self.text(&(number as u64).to_string()),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => self.text(&number.to_string()),
            _ => self.out.push_str(&number.to_string()),
        }
    }

    fn float(&mut self, kind: Kind, number: f64) {
        let text = if number.is_nan() {
            "\"NaN\"".to_owned()
        } else if number.is_infinite() {
            if number > 0.0 {
                "\"Infinity\""
            } else {
                "\"-Infinity\""
            }
            .to_owned()
        } else if kind == Kind::Float {
            serde_json::to_string(&(number as f32)).unwrap_or_default()
        } else {
            serde_json::to_string(&number).unwrap_or_default()
        };
        // 2.0 is 2, as the other implementations write it.
        self.out.push_str(text.strip_suffix(".0").unwrap_or(&text));
    }

    fn enumeration(&mut self, kind: Kind, number: i32) {
        let Kind::Enum(id) = kind else {
            return;
        };
        let schema = self.schema;
        match schema.enumeration(id) {
            Some(kind) if kind.name == "google.protobuf.NullValue" => self.out.push_str("null"),
            Some(kind) if kind.contains(number) => {
                self.text(kind.name_of(number).unwrap_or_default());
            }
            _ => self.out.push_str(&number.to_string()),
        }
    }

    fn dynamic(&mut self, value: &Dynamic) -> Result<()> {
        match value {
            Dynamic::Null => self.out.push_str("null"),
            Dynamic::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Dynamic::Number(number) if !number.is_finite() => {
                return problem("a google.protobuf.Value holds a number that JSON does not have");
            }
            Dynamic::Number(number) => self.float(Kind::Double, *number),
            Dynamic::Text(text) => self.text(text),
            Dynamic::List(values) => {
                self.out.push('[');
                let mut first = true;
                for value in values {
                    self.comma(&mut first);
                    self.dynamic(value)?;
                }
                self.out.push(']');
            }
            Dynamic::Struct(fields) => {
                self.out.push('{');
                let mut first = true;
                for (index, key) in last_of_each(fields.iter().map(|(key, _)| key.as_str())) {
                    let Some((_, value)) = fields.get(index) else {
                        continue;
                    };
                    self.comma(&mut first);
                    self.text(key);
                    self.out.push(':');
                    self.dynamic(value)?;
                }
                self.out.push('}');
            }
        }
        Ok(())
    }

    fn field_mask(&mut self, node: &Node<'_>) -> Result<()> {
        let mut paths = Vec::new();
        if let Some(Slot::List(leaves)) = node.slots.first() {
            for leaf in leaves {
                if let Leaf::Text(bytes) = leaf {
                    paths.push(camel(utf8(bytes)?)?);
                }
            }
        }
        self.text(&paths.join(","));
        Ok(())
    }

    fn any(&mut self, node: &Node<'_>, depth: Depth) -> Result<()> {
        let text = |index: usize| match node.slots.get(index) {
            Some(Slot::One(Leaf::Text(bytes) | Leaf::Bytes(bytes))) => *bytes,
            _ => &[][..],
        };
        let url = utf8(text(0))?;
        if url.is_empty() {
            self.out.push_str("{}");
            return Ok(());
        }
        let name = url.rsplit('/').next().unwrap_or_default();
        let Some(id) = self.schema.message(name) else {
            return problem(format!(
                "a google.protobuf.Any holds {name}, whose class has not been used here yet"
            ));
        };
        let depth = enter(depth)?;
        self.out.push_str("{\"@type\":");
        self.text(url);
        if has_own_json(name) {
            self.out.push_str(",\"value\":");
            self.message(id, text(1), depth)?;
        } else {
            let tree = self.tree(id, text(1), depth)?;
            if let Some(node) = tree.node(0) {
                self.fields(&tree, node, depth, &mut false)?;
            }
        }
        self.out.push('}');
        Ok(())
    }

    fn comma(&mut self, first: &mut bool) {
        if !std::mem::replace(first, false) {
            self.out.push(',');
        }
    }

    fn text(&mut self, text: &str) {
        self.out
            .push_str(&serde_json::to_string(text).unwrap_or_default());
    }
}

/// Whether the JSON form of this message is not an object of its fields, so that an `Any` of it has a `value`.
pub fn has_own_json(name: &str) -> bool {
    WellKnown::of(name).is_some()
        || matches!(
            name,
            "google.protobuf.Duration" | "google.protobuf.FieldMask" | "google.protobuf.Any"
        )
}

fn int(node: &Node<'_>, index: usize) -> i64 {
    match node.slots.get(index) {
        Some(Slot::One(Leaf::Int(number))) => *number,
        _ => 0,
    }
}

fn is_default(field: &Field, slot: &Slot<'_>) -> bool {
    if !matches!(field.cardinality, Cardinality::Singular(Presence::Implicit)) {
        return false;
    }
    match slot {
        Slot::One(Leaf::Int(number)) => *number == 0,
        Slot::One(Leaf::Enum(number)) => *number == 0,
        Slot::One(Leaf::Float(number)) => number.to_bits() == 0,
        Slot::One(Leaf::Bool(value)) => !value,
        Slot::One(Leaf::Text(bytes) | Leaf::Bytes(bytes)) => bytes.is_empty(),
        _ => false,
    }
}

fn key_text(kind: Kind, key: &Leaf<'_>) -> Result<String> {
    Ok(match key {
        Leaf::Int(number) if matches!(kind, Kind::Uint64 | Kind::Fixed64) => {
            (*number as u64).to_string()
        }
        Leaf::Int(number) => number.to_string(),
        Leaf::Bool(value) => value.to_string(),
        Leaf::Text(bytes) => utf8(bytes)?.to_owned(),
        _ => String::new(),
    })
}

/// A string of proto2 may hold any bytes, JSON may not (RFC 8259, section 8.1).
fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| {
        JsonError::new(format!(
            "a string that is not UTF-8 from its byte {} on; JSON has only UTF-8, declare the field as bytes",
            error.valid_up_to()
        ))
    })
}

/// The last occurrence of each key, with its index.
fn last_of_each<K: Clone + Eq + Hash>(keys: impl IntoIterator<Item = K>) -> Vec<(usize, K)> {
    let keys: Vec<K> = keys.into_iter().collect();
    let last: HashMap<K, usize> = keys.iter().cloned().zip(0..).collect();
    keys.into_iter()
        .enumerate()
        .filter(|(index, key)| last.get(key) == Some(index))
        .collect()
}

/// Converts `foo_bar.baz` to `fooBar.baz`, if that can be reversed.
fn camel(path: &str) -> Result<String> {
    let mut result = String::with_capacity(path.len());
    let mut capital = false;
    for character in path.chars() {
        match character {
            '_' if capital => {
                return problem("a google.protobuf.FieldMask whose path has no JSON form");
            }
            '_' => capital = true,
            'a'..='z' if capital => {
                result.push(character.to_ascii_uppercase());
                capital = false;
            }
            'A'..='Z' => return problem("a google.protobuf.FieldMask whose path has no JSON form"),
            _ if capital => {
                return problem("a google.protobuf.FieldMask whose path has no JSON form");
            }
            _ => result.push(character),
        }
    }
    if capital {
        return problem("a google.protobuf.FieldMask whose path has no JSON form");
    }
    Ok(result)
}
