//! A decoded message as a tree, for JSON and tests. Text and bytes are borrowed from the encoded message.

use super::decode::{Scalar, Sink, decode};
use super::dynamic::Dynamic;
use super::error::DecodeError;
use super::layout::{Field, LayoutId, MapEntry};
use super::limits::Limits;
use super::schema::Schema;

/// All messages of one decoding; the first is the outermost.
#[derive(Debug, Default)]
pub struct Tree<'b> {
    nodes: Vec<Node<'b>>,
}

#[derive(Debug)]
pub struct Node<'b> {
    pub layout: LayoutId,
    /// By the index of the field.
    pub slots: Vec<Slot<'b>>,
}

#[derive(Debug, Clone)]
pub enum Slot<'b> {
    Unset,
    One(Leaf<'b>),
    List(Vec<Leaf<'b>>),
    /// In wire order; the last value of a repeated key counts.
    Map(Vec<(Leaf<'b>, Leaf<'b>)>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Leaf<'b> {
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(&'b [u8]),
    Bytes(&'b [u8]),
    Enum(i32),
    Timestamp { seconds: i64, nanos: i32 },
    Dynamic(Dynamic),
    Message(usize),
}

impl<'b> From<Scalar<'b>> for Leaf<'b> {
    fn from(scalar: Scalar<'b>) -> Self {
        match scalar {
            Scalar::Int(number) => Self::Int(number),
            Scalar::Float(number) => Self::Float(number),
            Scalar::Bool(value) => Self::Bool(value),
            Scalar::Text(bytes) => Self::Text(bytes),
            Scalar::Bytes(bytes) => Self::Bytes(bytes),
            Scalar::Enum(number) => Self::Enum(number),
            Scalar::Timestamp { seconds, nanos } => Self::Timestamp { seconds, nanos },
            Scalar::Dynamic(value) => Self::Dynamic(value),
        }
    }
}

impl<'b> Tree<'b> {
    pub fn decode(schema: &Schema, layout: LayoutId, bytes: &'b [u8]) -> Result<Self, DecodeError> {
        Self::decode_within(schema, layout, bytes, Limits::default())
    }

    pub fn decode_within(
        schema: &Schema,
        layout: LayoutId,
        bytes: &'b [u8],
        limits: Limits,
    ) -> Result<Self, DecodeError> {
        let mut sink = TreeSink {
            schema,
            tree: Self::default(),
        };
        let root = sink.node(layout);
        decode(schema, layout, bytes, root, &mut sink, limits)?;
        Ok(sink.tree)
    }

    pub fn node(&self, index: usize) -> Option<&Node<'b>> {
        self.nodes.get(index)
    }
}

struct TreeSink<'s, 'b> {
    schema: &'s Schema,
    tree: Tree<'b>,
}

impl<'b> TreeSink<'_, 'b> {
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

    fn slot(&mut self, object: usize, index: usize) -> Option<&mut Slot<'b>> {
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

    fn push_leaf(&mut self, object: usize, index: usize, leaf: Leaf<'b>) {
        match self.slot(object, index) {
            Some(Slot::List(list)) => list.push(leaf),
            Some(slot) => *slot = Slot::List(vec![leaf]),
            None => {}
        }
    }

    fn insert_leaf(&mut self, object: usize, index: usize, key: Leaf<'b>, leaf: Leaf<'b>) {
        match self.slot(object, index) {
            Some(Slot::Map(entries)) => entries.push((key, leaf)),
            Some(slot) => *slot = Slot::Map(vec![(key, leaf)]),
            None => {}
        }
    }
}

impl<'b> Sink<'b> for TreeSink<'_, 'b> {
    type Object = usize;
    type Error = DecodeError;

    fn set(
        &mut self,
        object: usize,
        index: usize,
        field: &Field,
        value: Scalar<'b>,
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
        value: Scalar<'b>,
    ) -> Result<(), DecodeError> {
        self.push_leaf(object, index, value.into());
        Ok(())
    }

    fn insert(
        &mut self,
        object: usize,
        index: usize,
        _: &MapEntry,
        key: Scalar<'b>,
        value: Scalar<'b>,
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
        key: Scalar<'b>,
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
