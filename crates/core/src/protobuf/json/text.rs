//! JSON text as a tree that preserves order and repeated keys.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::protobuf::MAX_DEPTH;

/// Lists and objects in each other: a message is an object, in a list or a map where its field is repeated.
const MAX_NESTING: usize = 2 * MAX_DEPTH;

/// It is not `Clone`: a copy for each level of a nested message would cost quadratic time.
#[derive(Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// # Errors
    /// The error of serde_json, with line and column.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        // Its limit is lower.
        deserializer.disable_recursion_limit();
        let json = Nested(MAX_NESTING).deserialize(&mut deserializer);
        let json = json.and_then(|json| deserializer.end().map(|()| json));
        json.map_err(|error| error.to_string())
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a bool",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

/// A value with that many lists and objects in each other at most.
struct Nested(usize);

impl Nested {
    fn enter<E: de::Error>(&self) -> Result<usize, E> {
        let too_deep = || {
            E::custom(format!(
                "nested deeper than {MAX_NESTING} lists and objects"
            ))
        };
        self.0.checked_sub(1).ok_or_else(too_deep)
    }
}

impl<'de> DeserializeSeed<'de> for Nested {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested {
    type Value = Json;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Json, E> {
        Ok(Json::Int(number.into()))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Json, E> {
        Ok(Json::Int(number.into()))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Json, E> {
        Ok(Json::Float(number))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Json, E> {
        Ok(Json::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Json, A::Error> {
        let depth = self.enter()?;
        let mut list = Vec::new();
        while let Some(value) = values.next_element_seed(Nested(depth))? {
            list.push(value);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let depth = self.enter()?;
        let mut object = Vec::new();
        while let Some(key) = entries.next_key()? {
            object.push((key, entries.next_value_seed(Nested(depth))?));
        }
        Ok(Json::Object(object))
    }
}
