//! A message class and its layout: which property slot belongs to which field.

use std::collections::HashMap;

use ext_php_rs::exception::PhpResult;
use ext_php_rs::types::{ZendHashTable, Zval};
use ext_php_rs::zend::ClassEntry;

use weft_core::protobuf::{
    Cardinality, EnumId, Enumeration, Field, Kind, Layout, LayoutId, Presence, Schema, WellKnown,
};

use super::failure::schema as refused;
use super::schema_files;
use crate::array::{entries, values};
use crate::zend::value::{Object, Value};
use crate::zend::{Class, NoSlot, make};

/// Bound once per class and request.
pub struct Binding {
    pub class: Class,
    pub class_name: String,
    pub layout: LayoutId,
    /// Index of the property slot of each field.
    pub slots: Vec<u32>,
    /// The slot for fields that the layout does not know.
    pub unknown: u32,
    /// The enum of each field that has one; of a map's values for a map.
    pub enums: Vec<Option<EnumBinding>>,
    /// The values of a new object, in the order of its slots.
    pub defaults: Vec<Zval>,
}

/// A PHP enum: its cases live as long as their class does.
pub struct EnumBinding {
    pub class: Class,
    pub class_name: String,
    pub closed: bool,
    cases: HashMap<i32, Object<'static>>,
}

impl Binding {
    pub fn of(class: Class) -> PhpResult<Self> {
        let name = class.name().to_owned();
        if !implements_message(class.entry()) {
            return Err(refused(format!(
                "{name} is not a generated message class: it does not implement Weft\\Protobuf\\Message"
            )));
        }
        if class.has_creation_handler() {
            return Err(refused(format!(
                "{name} must not extend a class of an extension"
            )));
        }
        let file = schema_files::text(&schema_files::call(&name, "file")?, &name, "file")?;
        schema_files::add_file(&file, 0)?;
        let type_name =
            schema_files::text(&schema_files::call(&name, "typeName")?, &name, "typeName")?;
        let schema = schema_files::schema();
        let layout_id = schema.message(&type_name).ok_or_else(|| {
            refused(format!(
                "{file} has no message {type_name}, which {name} names"
            ))
        })?;
        let Some(layout) = schema.layout(layout_id) else {
            return Err(refused(format!("{type_name} is not known")));
        };
        Self::checked(class, name, &schema, layout_id, layout)
    }

    fn checked(
        class: Class,
        class_name: String,
        schema: &Schema,
        layout_id: LayoutId,
        layout: &Layout,
    ) -> PhpResult<Self> {
        let properties = check(&class_name, schema, layout)?;
        let slots = properties
            .iter()
            .map(|property| slot_of(class, &class_name, property))
            .collect::<PhpResult<Vec<_>>>()?;
        let enums = layout
            .fields
            .iter()
            .map(|field| EnumBinding::of_field(schema, field))
            .collect::<PhpResult<Vec<_>>>()?;
        let unknown = slot_of(class, &class_name, UNKNOWN_FIELDS)?;
        let mut binding = Self {
            class,
            class_name,
            layout: layout_id,
            slots,
            unknown,
            enums,
            defaults: Vec::new(),
        };
        binding.defaults = binding.initial(schema, layout);
        Ok(binding)
    }

    /// A class entry's own defaults are not used: promoted properties have none.
    fn initial(&self, schema: &Schema, layout: &Layout) -> Vec<Zval> {
        let mut defaults: Vec<Zval> = (0..self.class.slot_count()).map(|_| make::null()).collect();
        if let Some(value) = defaults.get_mut(self.unknown as usize) {
            *value = make::empty_string();
        }
        for ((field, &index), cases) in layout.fields.iter().zip(&self.slots).zip(&self.enums) {
            if let Some(value) = defaults.get_mut(index as usize) {
                *value = default(schema, field, cases.as_ref());
            }
        }
        defaults
    }
}

const UNKNOWN_FIELDS: &str = "unknownFields";

fn implements_message(entry: &ClassEntry) -> bool {
    ClassEntry::try_find("Weft\\Protobuf\\Message")
        .is_some_and(|message| entry.instance_of(message))
}

fn default(schema: &Schema, field: &Field, cases: Option<&EnumBinding>) -> Zval {
    match field.cardinality {
        Cardinality::Repeated { .. } | Cardinality::Map(_) => make::empty_array(),
        Cardinality::Singular(Presence::Implicit) => match field.kind {
            Kind::Double | Kind::Float => make::float(0.0),
            Kind::Bool => make::boolean(false),
            Kind::String | Kind::Bytes => make::empty_string(),
            Kind::Enum(id) => match cases {
                Some(cases) => cases.value(schema.enumeration(id).map_or(0, Enumeration::default)),
                None => make::int(0),
            },
            _ => make::int(0),
        },
        Cardinality::Singular(_) => make::null(),
    }
}

/// Lets PHP compare the class's properties with what will be written to them. Returns the name of each field's property.
fn check(class: &str, schema: &Schema, layout: &Layout) -> PhpResult<Vec<String>> {
    let mut expected = ZendHashTable::with_capacity(layout.fields.len() as u32);
    for field in &layout.fields {
        let mut pair = ZendHashTable::with_capacity(2);
        pair.push(field.name.as_str())?;
        pair.push(property_type(schema, field)?)?;
        expected.push(crate::convert::array_zval(pair))?;
    }
    let expected = crate::convert::array_zval(expected);
    let answer = crate::convert::call(
        "Weft\\Protobuf\\Internal\\MessageClass::properties",
        vec![&class, &expected],
    )?;
    let names = answer
        .array()
        .map(|array| values(array).filter_map(Zval::string).collect());
    match names {
        Some(names) => Ok(names),
        None => Err(refused(answer.string().unwrap_or_default())),
    }
}

fn property_type(schema: &Schema, field: &Field) -> PhpResult<String> {
    let Cardinality::Singular(presence) = &field.cardinality else {
        return Ok("array".to_owned());
    };
    let kind = match field.well_known {
        Some(WellKnown::Timestamp) => "DateTimeImmutable".to_owned(),
        Some(WellKnown::Struct | WellKnown::ListValue) => "array".to_owned(),
        Some(WellKnown::Value) => return Ok("mixed".to_owned()),
        Some(WellKnown::Wrapper(kind)) => scalar_type(kind).to_owned(),
        None => match field.kind {
            Kind::Message(id) | Kind::Group(id) => {
                class_of(schema.layout(id).map_or("", |layout| layout.name.as_str()))?
            }
            Kind::Enum(id) => match schema.enumeration(id) {
                Some(kind) if kind.open => format!("{}|int", class_of(&kind.name)?),
                Some(kind) => class_of(&kind.name)?,
                None => "int".to_owned(),
            },
            kind => scalar_type(kind).to_owned(),
        },
    };
    Ok(match presence {
        Presence::Implicit => kind,
        _ => format!("{kind}|null"),
    })
}

fn scalar_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Double | Kind::Float => "float",
        Kind::Bool => "bool",
        Kind::String | Kind::Bytes => "string",
        _ => "int",
    }
}

fn class_of(type_name: &str) -> PhpResult<String> {
    schema_files::class_of(type_name)
        .ok_or_else(|| refused(format!("no class was generated for the type {type_name}")))
}

/// The index of a declared property's slot.
fn slot_of(class: Class, name: &str, property: &str) -> PhpResult<u32> {
    class.slot(property).map_err(|reason| match reason {
        NoSlot::Unknown => refused(format!("{name} has no property ${property}")),
        NoSlot::NotInObject => refused(format!("{name}::${property} is not kept in the object")),
    })
}

impl EnumBinding {
    fn of_field(schema: &Schema, field: &Field) -> PhpResult<Option<Self>> {
        let kind = match &field.cardinality {
            Cardinality::Map(entry) => entry.value.kind,
            _ => field.kind,
        };
        match kind {
            Kind::Enum(id) => Self::of(schema, id).map(Some),
            _ => Ok(None),
        }
    }

    fn of(schema: &Schema, id: EnumId) -> PhpResult<Self> {
        let Some(enumeration) = schema.enumeration(id) else {
            return Err(refused("an enum that is not known"));
        };
        let class_name = class_of(&enumeration.name)?;
        let names = crate::convert::call(
            "Weft\\Protobuf\\Internal\\MessageClass::cases",
            vec![&class_name],
        )?;
        let Some(names) = names.array() else {
            return Err(refused(names.string().unwrap_or_default()));
        };
        let class = ClassEntry::try_find(&class_name)
            .map(Class::of_entry)
            .ok_or_else(|| refused(format!("the enum {class_name} does not exist")))?;
        let mut cases = HashMap::with_capacity(names.len());
        for (number, name) in entries(names) {
            if let (Some(number), Some(name)) = (number.long(), name.zend_str()) {
                // PHP said just now that the enum has this case.
                cases.insert(number as i32, Object::case(class, name));
            }
        }
        Ok(Self {
            class,
            class_name,
            closed: !enumeration.open,
            cases,
        })
    }

    /// The case for a number, or the number itself when there is none.
    pub fn value(&self, number: i32) -> Zval {
        match self.cases.get(&number) {
            Some(case) => case.to_zval(),
            None => make::int(i64::from(number)),
        }
    }

    /// The number of one of its cases.
    pub fn number(&self, object: Object<'_>) -> Option<i64> {
        if object.class() != self.class {
            return None;
        }
        // The second slot of a backed enum's case is its value.
        match object.value(1) {
            Value::Int(number) => Some(number),
            _ => None,
        }
    }
}
