//! A compiled message type: its fields by number and their encoding.

use std::collections::{BTreeMap, HashMap};

use super::wire;

/// A message type of a [`Schema`](super::Schema).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LayoutId(u32);

/// An enum of a [`Schema`](super::Schema).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EnumId(u32);

impl LayoutId {
    pub(super) fn new(index: usize) -> Self {
        Self(index as u32)
    }

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl EnumId {
    pub(super) fn new(index: usize) -> Self {
        Self(index as u32)
    }

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A message type. Fields are in the order of their numbers, which is the order they are written in.
#[derive(Debug, Clone)]
pub struct Layout {
    /// With the package, without a leading dot.
    pub name: String,
    pub fields: Vec<Field>,
    pub oneofs: Vec<Oneof>,
    /// Whether any field is `required`.
    pub required: bool,
    /// Whether the message is the entry type of a map.
    pub map_entry: bool,
    pub(super) lookup: Lookup,
}

#[derive(Debug, Clone)]
pub struct Oneof {
    pub name: String,
    /// Indexes of its fields in [`Layout::fields`].
    pub members: Vec<usize>,
}

#[derive(Debug, Clone)]
pub struct Field {
    pub name: String,
    /// The key in JSON.
    pub json_name: String,
    pub number: u32,
    pub kind: Kind,
    pub cardinality: Cardinality,
    /// Index in [`Layout::oneofs`].
    pub oneof: Option<usize>,
    /// Whether text must be UTF-8.
    pub utf8: bool,
    /// Set for well-known messages with a native counterpart.
    pub well_known: Option<WellKnown>,
}

#[derive(Debug, Clone)]
pub enum Cardinality {
    Singular(Presence),
    Repeated { packed: bool },
    Map(Box<MapEntry>),
}

#[derive(Debug, Clone)]
pub struct MapEntry {
    pub key: Field,
    pub value: Field,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// The default value means absent.
    Implicit,
    Explicit,
    Required,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Double,
    Float,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Sint32,
    Sint64,
    Fixed32,
    Fixed64,
    Sfixed32,
    Sfixed64,
    Bool,
    String,
    Bytes,
    Enum(EnumId),
    Message(LayoutId),
    Group(LayoutId),
}

/// Well-known messages with a native counterpart in every language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WellKnown {
    Timestamp,
    /// A wrapper that adds presence to a scalar.
    Wrapper(Kind),
    Struct,
    Value,
    ListValue,
}

impl WellKnown {
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name.strip_prefix("google.protobuf.")? {
            "Timestamp" => Self::Timestamp,
            "Struct" => Self::Struct,
            "Value" => Self::Value,
            "ListValue" => Self::ListValue,
            "DoubleValue" => Self::Wrapper(Kind::Double),
            "FloatValue" => Self::Wrapper(Kind::Float),
            "Int64Value" => Self::Wrapper(Kind::Int64),
            "UInt64Value" => Self::Wrapper(Kind::Uint64),
            "Int32Value" => Self::Wrapper(Kind::Int32),
            "UInt32Value" => Self::Wrapper(Kind::Uint32),
            "BoolValue" => Self::Wrapper(Kind::Bool),
            "StringValue" => Self::Wrapper(Kind::String),
            "BytesValue" => Self::Wrapper(Kind::Bytes),
            _ => return None,
        })
    }
}

impl Field {
    /// The kind of a value of this field: for a wrapper that of the value inside.
    pub(super) fn scalar_kind(&self) -> Kind {
        match self.well_known {
            Some(WellKnown::Wrapper(kind)) => kind,
            _ => self.kind,
        }
    }
}

impl Kind {
    /// The wire type of one value of this kind.
    pub fn wire(self) -> u8 {
        match self {
            Self::Double | Self::Fixed64 | Self::Sfixed64 => wire::FIXED64,
            Self::Float | Self::Fixed32 | Self::Sfixed32 => wire::FIXED32,
            Self::String | Self::Bytes | Self::Message(_) => wire::LENGTH,
            Self::Group(_) => wire::GROUP_START,
            _ => wire::VARINT,
        }
    }

    /// Whether a list of these may be packed.
    pub fn packable(self) -> bool {
        !matches!(
            self,
            Self::String | Self::Bytes | Self::Message(_) | Self::Group(_)
        )
    }

    pub fn layout(self) -> Option<LayoutId> {
        match self {
            Self::Message(id) | Self::Group(id) => Some(id),
            _ => None,
        }
    }
}

impl Field {
    /// The tag of one value.
    #[inline]
    pub fn tag(&self) -> u64 {
        u64::from(self.number) << 3 | u64::from(self.kind.wire())
    }

    /// The tag of a packed list.
    #[inline]
    pub fn packed_tag(&self) -> u64 {
        u64::from(self.number) << 3 | u64::from(wire::LENGTH)
    }
}

/// An enum type: its numbers and names.
#[derive(Debug, Clone)]
pub struct Enumeration {
    pub name: String,
    /// Whether a number without a name is an ordinary value (proto3) or an unknown field (proto2).
    pub open: bool,
    /// In the order of declaration; the first is the default. Aliases included.
    pub values: Vec<(String, i32)>,
    pub(super) names: HashMap<String, i32>,
    pub(super) numbers: HashMap<i32, usize>,
}

impl Enumeration {
    pub fn contains(&self, number: i32) -> bool {
        self.numbers.contains_key(&number)
    }

    pub fn number(&self, name: &str) -> Option<i32> {
        self.names.get(name).copied()
    }

    /// The first name declared for a number.
    pub fn name_of(&self, number: i32) -> Option<&str> {
        let index = *self.numbers.get(&number)?;
        self.values.get(index).map(|(name, _)| name.as_str())
    }

    pub fn default(&self) -> i32 {
        self.values.first().map_or(0, |(_, number)| *number)
    }
}

/// From field number to index: an array for the small numbers that nearly all fields have.
#[derive(Debug, Clone, Default)]
pub(super) struct Lookup {
    small: Vec<u16>,
    large: BTreeMap<u32, usize>,
}

const SMALL: u32 = 256;
const NONE: u16 = u16::MAX;

impl Lookup {
    pub fn of(fields: &[Field]) -> Self {
        let mut lookup = Self::default();
        for (index, field) in fields.iter().enumerate() {
            match u16::try_from(index) {
                Ok(small) if field.number < SMALL && small != NONE => {
                    let place = field.number as usize;
                    if lookup.small.len() <= place {
                        lookup.small.resize(place + 1, NONE);
                    }
                    if let Some(slot) = lookup.small.get_mut(place) {
                        *slot = small;
                    }
                }
                _ => drop(lookup.large.insert(field.number, index)),
            }
        }
        lookup
    }

    #[inline]
    fn index(&self, number: u32) -> Option<usize> {
        match self.small.get(number as usize) {
            Some(&index) if index != NONE => Some(usize::from(index)),
            _ if self.large.is_empty() => None,
            _ => self.large.get(&number).copied(),
        }
    }
}

impl Layout {
    #[inline]
    pub fn field(&self, number: u32) -> Option<(usize, &Field)> {
        let index = self.lookup.index(number)?;
        self.fields.get(index).map(|field| (index, field))
    }
}
