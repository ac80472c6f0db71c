//! Resolved descriptors: every type name becomes the id of a layout or an enumeration.

use std::collections::HashMap;

use super::descriptor::{EnumProto, FieldProto, FileProto, MessageProto};
use super::error::SchemaError;
use super::features::{EDITIONS, Features, FieldPresence, PROTO2, PROTO3};
use super::layout::{
    Cardinality, EnumId, Enumeration, Field, Kind, Layout, LayoutId, Lookup, MapEntry, Oneof,
    Presence, WellKnown,
};

type Result<T> = std::result::Result<T, SchemaError>;

#[derive(Debug, Clone, Copy)]
enum Type {
    Message(LayoutId),
    Enum(EnumId),
}

/// All known types. Files are only added, so ids stay valid.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    layouts: Vec<Layout>,
    enums: Vec<Enumeration>,
    types: HashMap<String, (Type, String)>,
    files: HashMap<String, Vec<u8>>,
}

/// A message whose name is known and whose fields are not resolved yet.
struct Pending {
    id: LayoutId,
    name: String,
    proto: MessageProto,
    features: Features,
}

impl Schema {
    pub fn layout(&self, id: LayoutId) -> Option<&Layout> {
        self.layouts.get(id.index())
    }

    pub fn enumeration(&self, id: EnumId) -> Option<&Enumeration> {
        self.enums.get(id.index())
    }

    /// By full name without a leading dot.
    pub fn message(&self, name: &str) -> Option<LayoutId> {
        match self.types.get(name) {
            Some((Type::Message(id), _)) => Some(*id),
            _ => None,
        }
    }

    /// By full name without a leading dot.
    pub fn enumeration_named(&self, name: &str) -> Option<EnumId> {
        match self.types.get(name) {
            Some((Type::Enum(id), _)) => Some(*id),
            _ => None,
        }
    }

    pub fn contains_file(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// Adds the types of a serialized `FileDescriptorProto`, after those of the imports it needs. Adding the same bytes again does
    /// nothing.
    ///
    /// # Errors
    /// After an error no definition of the file is visible.
    pub fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let file = FileProto::parse(bytes)?;
        if let Some(known) = self.files.get(&file.name) {
            return if known == bytes {
                Ok(())
            } else {
                Err(SchemaError::FileChanged { file: file.name })
            };
        }
        let (layouts, enums) = (self.layouts.len(), self.enums.len());
        let name = file.name.clone();
        match self.add_types(file) {
            Ok(()) => {
                self.files.insert(name, bytes.to_vec());
                Ok(())
            }
            Err(error) => {
                self.layouts.truncate(layouts);
                self.enums.truncate(enums);
                self.types.retain(|_, (kind, _)| match kind {
                    Type::Message(id) => id.index() < layouts,
                    Type::Enum(id) => id.index() < enums,
                });
                Err(error)
            }
        }
    }

    fn add_types(&mut self, file: FileProto) -> Result<()> {
        let features = base(&file)?.overridden(&file.features)?;
        let mut pending = Vec::new();
        for message in file.messages {
            self.declare(&file.name, &file.package, message, features, &mut pending)?;
        }
        for enumeration in &file.enums {
            self.declare_enum(&file.name, &file.package, enumeration, features)?;
        }
        // Map entries first: the fields that use them need their keys and values.
        pending.sort_by_key(|message| !message.proto.map_entry);
        for message in pending {
            let id = message.id;
            let layout = self.resolve(&file.name, message)?;
            if let Some(slot) = self.layouts.get_mut(id.index()) {
                *slot = layout;
            }
        }
        Ok(())
    }

    fn declare(
        &mut self,
        file: &str,
        scope: &str,
        mut proto: MessageProto,
        features: Features,
        pending: &mut Vec<Pending>,
    ) -> Result<()> {
        let features = features.overridden(&proto.features)?;
        let name = join(scope, &proto.name);
        let id = LayoutId::new(self.layouts.len());
        self.layouts.push(Layout {
            name: name.clone(),
            fields: Vec::new(),
            oneofs: Vec::new(),
            required: false,
            map_entry: proto.map_entry,
            lookup: Lookup::default(),
        });
        self.name(file, &name, Type::Message(id))?;
        for nested in std::mem::take(&mut proto.nested) {
            self.declare(file, &name, nested, features, pending)?;
        }
        for enumeration in &proto.enums {
            self.declare_enum(file, &name, enumeration, features)?;
        }
        pending.push(Pending {
            id,
            name,
            proto,
            features,
        });
        Ok(())
    }

    fn declare_enum(
        &mut self,
        file: &str,
        scope: &str,
        proto: &EnumProto,
        features: Features,
    ) -> Result<()> {
        let name = join(scope, &proto.name);
        let mut numbers = HashMap::new();
        for (index, (_, number)) in proto.values.iter().enumerate() {
            numbers.entry(*number).or_insert(index);
        }
        let id = EnumId::new(self.enums.len());
        self.enums.push(Enumeration {
            name: name.clone(),
            open: features.overridden(&proto.features)?.open_enum,
            values: proto.values.clone(),
            names: proto.values.iter().cloned().collect(),
            numbers,
        });
        self.name(file, &name, Type::Enum(id))
    }

    fn name(&mut self, file: &str, name: &str, kind: Type) -> Result<()> {
        match self.types.get(name) {
            Some((_, other)) => Err(SchemaError::Duplicate {
                name: name.to_owned(),
                file: file.to_owned(),
                other: other.clone(),
            }),
            None => {
                self.types.insert(name.to_owned(), (kind, file.to_owned()));
                Ok(())
            }
        }
    }

    fn resolve(&self, file: &str, message: Pending) -> Result<Layout> {
        let Pending {
            name,
            proto,
            features,
            ..
        } = message;
        let mut fields = proto
            .fields
            .iter()
            .map(|field| self.field(file, &name, field, features, proto.map_entry))
            .collect::<Result<Vec<_>>>()?;
        fields.sort_by_key(|field| field.number);
        let mut oneofs: Vec<Oneof> = proto
            .oneofs
            .into_iter()
            .map(|name| Oneof {
                name,
                members: Vec::new(),
            })
            .collect();
        for (index, field) in fields.iter().enumerate() {
            if let Some(oneof) = field.oneof.and_then(|oneof| oneofs.get_mut(oneof)) {
                oneof.members.push(index);
            }
        }
        let is_required =
            |field: &Field| matches!(field.cardinality, Cardinality::Singular(Presence::Required));
        Ok(Layout {
            name,
            oneofs,
            required: fields.iter().any(is_required),
            map_entry: proto.map_entry,
            lookup: Lookup::of(&fields),
            fields,
        })
    }

    fn field(
        &self,
        file: &str,
        message: &str,
        proto: &FieldProto,
        features: Features,
        inside_map: bool,
    ) -> Result<Field> {
        let features = features.overridden(&proto.features)?;
        let user = format!("{message}.{}", proto.name);
        let mut kind = self.kind(file, &user, proto)?;
        let entry = self.map_entry(file, &user, kind)?;
        if let Kind::Message(id) = kind
            && features.delimited
            && entry.is_none()
            && !inside_map
        {
            kind = Kind::Group(id);
        }
        let name = proto.type_name.trim_start_matches('.');
        let well_known = kind.layout().and_then(|_| WellKnown::of(name));
        Ok(Field {
            cardinality: cardinality(proto, kind, entry, features),
            json_name: match proto.json_name.as_str() {
                "" => json_name(&proto.name),
                given => given.to_owned(),
            },
            name: proto.name.clone(),
            number: proto.number,
            kind,
            oneof: proto.oneof.filter(|_| !proto.proto3_optional),
            utf8: features.validate_utf8,
            well_known,
        })
    }

    fn map_entry(&self, file: &str, user: &str, kind: Kind) -> Result<Option<MapEntry>> {
        let Kind::Message(id) = kind else {
            return Ok(None);
        };
        let Some(layout) = self.layout(id) else {
            return Ok(None);
        };
        if !layout.map_entry {
            return Ok(None);
        }
        match (layout.field(1), layout.field(2)) {
            (Some((_, key)), Some((_, value))) => Ok(Some(MapEntry {
                key: key.clone(),
                value: value.clone(),
            })),
            _ => Err(SchemaError::MapEntry {
                file: file.to_owned(),
                user: user.to_owned(),
            }),
        }
    }

    fn kind(&self, file: &str, user: &str, proto: &FieldProto) -> Result<Kind> {
        Ok(match proto.kind {
            1 => Kind::Double,
            2 => Kind::Float,
            3 => Kind::Int64,
            4 => Kind::Uint64,
            5 => Kind::Int32,
            6 => Kind::Fixed64,
            7 => Kind::Fixed32,
            8 => Kind::Bool,
            9 => Kind::String,
            12 => Kind::Bytes,
            13 => Kind::Uint32,
            15 => Kind::Sfixed32,
            16 => Kind::Sfixed64,
            17 => Kind::Sint32,
            18 => Kind::Sint64,
            10 | 11 | 14 => self.named_kind(file, user, proto)?,
            kind => {
                return Err(SchemaError::UnknownKind {
                    file: file.to_owned(),
                    user: user.to_owned(),
                    kind,
                });
            }
        })
    }

    fn named_kind(&self, file: &str, user: &str, proto: &FieldProto) -> Result<Kind> {
        let name = proto.type_name.trim_start_matches('.');
        match (proto.kind, self.types.get(name)) {
            (14, Some((Type::Enum(id), _))) => Ok(Kind::Enum(*id)),
            (10, Some((Type::Message(id), _))) => Ok(Kind::Group(*id)),
            (11, Some((Type::Message(id), _))) => Ok(Kind::Message(*id)),
            _ => Err(SchemaError::UnknownType {
                file: file.to_owned(),
                user: user.to_owned(),
                name: name.to_owned(),
            }),
        }
    }
}

const REPEATED: u64 = 3;
const REQUIRED: u64 = 2;

fn base(file: &FileProto) -> Result<Features> {
    match (file.syntax.as_str(), file.edition) {
        ("" | "proto2", _) => Ok(PROTO2),
        ("proto3", _) => Ok(PROTO3),
        ("editions", 998) => Ok(PROTO2),
        ("editions", 999) => Ok(PROTO3),
        ("editions", 1000 | 1001) => Ok(EDITIONS),
        ("editions", edition) => Err(SchemaError::Syntax {
            file: file.name.clone(),
            syntax: format!("edition {edition}"),
        }),
        (syntax, _) => Err(SchemaError::Syntax {
            file: file.name.clone(),
            syntax: syntax.to_owned(),
        }),
    }
}

fn cardinality(
    proto: &FieldProto,
    kind: Kind,
    entry: Option<MapEntry>,
    features: Features,
) -> Cardinality {
    if let Some(entry) = entry {
        return Cardinality::Map(Box::new(entry));
    }
    if proto.label == REPEATED {
        let packed = proto.packed.unwrap_or(features.packed);
        return Cardinality::Repeated {
            packed: packed && kind.packable(),
        };
    }
    Cardinality::Singular(
        if proto.label == REQUIRED || features.presence == FieldPresence::Required {
            Presence::Required
        } else if proto.oneof.is_some()
            || proto.proto3_optional
            || kind.layout().is_some()
            || features.presence == FieldPresence::Explicit
        {
            Presence::Explicit
        } else {
            Presence::Implicit
        },
    )
}

fn join(scope: &str, name: &str) -> String {
    match scope {
        "" => name.to_owned(),
        scope => format!("{scope}.{name}"),
    }
}

/// Derives a JSON name as protoc does: removes underscores and capitalizes the letter after each.
fn json_name(name: &str) -> String {
    let mut result = String::with_capacity(name.len());
    let mut capital = false;
    for character in name.chars() {
        match character {
            '_' => capital = true,
            _ if capital => {
                result.push(character.to_ascii_uppercase());
                capital = false;
            }
            _ => result.push(character),
        }
    }
    result
}
