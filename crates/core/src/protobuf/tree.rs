//! A decoded message as a tree, for what needs all of it at once and no PHP: JSON, and the tests.

use super::decode::{Scalar, Sink, decode};
use super::dynamic::Dynamic;
use super::error::DecodeError;
use super::layout::{Field, MapEntry};
use super::schema::{LayoutId, Schema};

/// All messages of one decoding; the first is the outermost.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: Vec<Node>,
}

#[derive(Debug)]
pub struct Node {
    pub layout: LayoutId,
    /// By the index of the field.
    pub slots: Vec<Slot>,
}

#[derive(Debug, Clone)]
pub enum Slot {
    Unset,
    One(Leaf),
    List(Vec<Leaf>),
    /// In the order of the wire; of a repeated key the last value counts.
    Map(Vec<(Leaf, Leaf)>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Leaf {
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(Vec<u8>),
    Bytes(Vec<u8>),
    Enum(i32),
    Timestamp { seconds: i64, nanos: i32 },
    Dynamic(Dynamic),
    Message(usize),
}

impl From<Scalar<'_>> for Leaf {
    fn from(scalar: Scalar<'_>) -> Self {
        match scalar {
            Scalar::Int(number) => Self::Int(number),
            Scalar::Float(number) => Self::Float(number),
            Scalar::Bool(value) => Self::Bool(value),
            Scalar::Text(bytes) => Self::Text(bytes.to_vec()),
            Scalar::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            Scalar::Enum(number) => Self::Enum(number),
            Scalar::Timestamp { seconds, nanos } => Self::Timestamp { seconds, nanos },
            Scalar::Dynamic(value) => Self::Dynamic(value),
        }
    }
}

impl Tree {
    pub fn decode(schema: &Schema, layout: LayoutId, bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut sink = TreeSink {
            schema,
            tree: Self::default(),
        };
        let root = sink.node(layout);
        decode(schema, layout, bytes, root, &mut sink)?;
        Ok(sink.tree)
    }

    pub fn node(&self, index: usize) -> Option<&Node> {
        self.nodes.get(index)
    }
}

struct TreeSink<'s> {
    schema: &'s Schema,
    tree: Tree,
}

impl TreeSink<'_> {
    fn node(&mut self, layout: LayoutId) -> usize {
        let fields = self.schema.layout(layout).map_or(0, |l| l.fields.len());
        self.tree.nodes.push(Node {
            layout,
            slots: vec![Slot::Unset; fields],
        });
        self.tree.nodes.len() - 1
    }

    fn child_of(&mut self, field: &Field) -> usize {
        match field.kind.layout() {
            Some(layout) => self.node(layout),
            None => 0,
        }
    }

    fn slot(&mut self, object: usize, index: usize) -> Option<&mut Slot> {
        self.tree.nodes.get_mut(object)?.slots.get_mut(index)
    }

    fn clear_siblings(&mut self, object: usize, index: usize, field: &Field) {
        let Some(node) = self.tree.nodes.get_mut(object) else {
            return;
        };
        let oneofs = self.schema.layout(node.layout).map(|l| &l.oneofs);
        let oneof = field.oneof.and_then(|oneof| oneofs?.get(oneof));
        for &member in oneof.map_or(&[][..], |oneof| &oneof.members) {
            if let Some(slot) = node.slots.get_mut(member)
                && member != index
            {
                *slot = Slot::Unset;
            }
        }
    }

    fn push_leaf(&mut self, object: usize, index: usize, leaf: Leaf) {
        match self.slot(object, index) {
            Some(Slot::List(list)) => list.push(leaf),
            Some(slot) => *slot = Slot::List(vec![leaf]),
            None => {}
        }
    }

    fn insert_leaf(&mut self, object: usize, index: usize, key: Leaf, leaf: Leaf) {
        match self.slot(object, index) {
            Some(Slot::Map(entries)) => entries.push((key, leaf)),
            Some(slot) => *slot = Slot::Map(vec![(key, leaf)]),
            None => {}
        }
    }
}

impl Sink for TreeSink<'_> {
    type Object = usize;
    type Error = DecodeError;

    fn set(
        &mut self,
        object: usize,
        index: usize,
        field: &Field,
        value: Scalar<'_>,
    ) -> Result<(), DecodeError> {
        self.clear_siblings(object, index, field);
        if let Some(slot) = self.slot(object, index) {
            *slot = Slot::One(value.into());
        }
        Ok(())
    }

    fn push(
        &mut self,
        object: usize,
        index: usize,
        _: &Field,
        value: Scalar<'_>,
    ) -> Result<(), DecodeError> {
        self.push_leaf(object, index, value.into());
        Ok(())
    }

    fn insert(
        &mut self,
        object: usize,
        index: usize,
        _: &MapEntry,
        key: Scalar<'_>,
        value: Scalar<'_>,
    ) -> Result<(), DecodeError> {
        self.insert_leaf(object, index, key.into(), value.into());
        Ok(())
    }

    fn child(&mut self, object: usize, index: usize, field: &Field) -> Result<usize, DecodeError> {
        self.clear_siblings(object, index, field);
        if let Some(Slot::One(Leaf::Message(child))) = self.slot(object, index) {
            return Ok(*child);
        }
        let child = self.child_of(field);
        if let Some(slot) = self.slot(object, index) {
            *slot = Slot::One(Leaf::Message(child));
        }
        Ok(child)
    }

    fn push_child(
        &mut self,
        object: usize,
        index: usize,
        field: &Field,
    ) -> Result<usize, DecodeError> {
        let child = self.child_of(field);
        self.push_leaf(object, index, Leaf::Message(child));
        Ok(child)
    }

    fn insert_child(
        &mut self,
        object: usize,
        index: usize,
        entry: &MapEntry,
        key: Scalar<'_>,
    ) -> Result<usize, DecodeError> {
        let child = self.child_of(&entry.value);
        self.insert_leaf(object, index, key.into(), Leaf::Message(child));
        Ok(child)
    }

    fn unknown(&mut self, _: usize, _: &[u8]) -> Result<(), DecodeError> {
        Ok(())
    }

    fn is_set(&mut self, object: usize, index: usize) -> bool {
        !matches!(self.slot(object, index), None | Some(Slot::Unset))
    }
}
