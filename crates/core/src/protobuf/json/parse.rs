//! Converts JSON to an encoded message, in the order of the text.

use std::collections::HashSet;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::print::has_own_json;
use super::text::Json;
use super::time::{parse_duration, parse_timestamp};
use super::{JsonError, Result, enter, problem};
use crate::protobuf::layout::{
    Cardinality, EnumId, Field, Kind, Layout, LayoutId, MapEntry, WellKnown,
};
use crate::protobuf::schema::Schema;
use crate::protobuf::wire::{self, close, open, put_delimited, put_varint};
use crate::protobuf::{Depth, Dynamic};

const RELAXED: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, RELAXED);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, RELAXED);

/// Encodes the message that the JSON text represents. With `ignore_unknown`, unknown keys and enum names are skipped.
///
/// # Errors
/// [`JsonError`] with the place in the text.
pub fn from_json(
    schema: &Schema,
    layout: LayoutId,
    text: &[u8],
    ignore_unknown: bool,
) -> Result<Vec<u8>> {
    let json = Json::parse(text).map_err(JsonError::new)?;
    let reader = Reader {
        schema,
        ignore_unknown,
    };
    let mut out = Vec::new();
    reader.message(&mut out, layout, &json, Depth::OUTERMOST)?;
    Ok(out)
}

struct Reader<'s> {
    schema: &'s Schema,
    ignore_unknown: bool,
}

impl Reader<'_> {
    /// `depth` is inside the message.
    fn message(&self, out: &mut Vec<u8>, id: LayoutId, json: &Json, depth: Depth) -> Result<()> {
        let Some(layout) = self.schema.layout(id) else {
            return Ok(());
        };
        if let Some(kind) = WellKnown::of(&layout.name) {
            return self.well_known(out, kind, json, depth);
        }
        match layout.name.as_str() {
            "google.protobuf.Duration" => duration(out, json),
            "google.protobuf.FieldMask" => field_mask(out, json),
            "google.protobuf.Any" => self.any(out, json, depth),
            _ => match json {
                Json::Object(entries) => self.fields(out, layout, entries.iter(), depth),
                other => problem(format!("expected an object, found {}", other.kind())),
            },
        }
    }

    fn fields<'j>(
        &self,
        out: &mut Vec<u8>,
        layout: &Layout,
        entries: impl Iterator<Item = &'j (String, Json)>,
        depth: Depth,
    ) -> Result<()> {
        let (mut seen, mut oneofs) = (HashSet::new(), HashSet::new());
        for (key, value) in entries {
            let Some(field) = layout
                .fields
                .iter()
                .find(|field| field.json_name == *key)
                .or_else(|| layout.fields.iter().find(|field| field.name == *key))
            else {
                if self.ignore_unknown || (key.starts_with('[') && key.ends_with(']')) {
                    continue;
                }
                return problem(format!("{} has no field \"{key}\"", layout.name));
            };
            if !seen.insert(field.number) {
                return problem(format!("the field {} is there twice", field.name));
            }
            if *value == Json::Null && !self.takes_null(field) {
                continue;
            }
            if field.oneof.is_some_and(|oneof| !oneofs.insert(oneof)) {
                return problem(format!("{} is not the only field of its oneof", field.name));
            }
            self.field(out, field, value, depth)
                .map_err(|error| error.inside(&format!(".{key}")))?;
        }
        Ok(())
    }

    /// Whether null is a value of the field instead of meaning absent.
    fn takes_null(&self, field: &Field) -> bool {
        matches!(field.cardinality, Cardinality::Singular(_))
            && (field.well_known == Some(WellKnown::Value) || self.is_null_value(field.kind))
    }

    fn is_null_value(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Enum(id) if self.schema.enumeration(id).is_some_and(|kind| kind.name == "google.protobuf.NullValue"))
    }

    fn field(&self, out: &mut Vec<u8>, field: &Field, json: &Json, depth: Depth) -> Result<()> {
        match (&field.cardinality, json) {
            (Cardinality::Singular(_), json) => self.tagged(out, field, json, depth),
            (Cardinality::Repeated { .. }, Json::List(values)) => {
                for (index, value) in values.iter().enumerate() {
                    self.element(value, field)
                        .and_then(|()| self.tagged(out, field, value, depth))
                        .map_err(|error| error.inside(&format!("[{index}]")))?;
                }
                Ok(())
            }
            (Cardinality::Map(entry), Json::Object(entries)) => {
                self.map(out, field, entry, entries, depth)
            }
            (Cardinality::Repeated { .. }, other) => {
                problem(format!("expected a list, found {}", other.kind()))
            }
            (Cardinality::Map(_), other) => {
                problem(format!("expected an object, found {}", other.kind()))
            }
        }
    }

    /// Lists and maps hold no nulls, unless null is a value of their type.
    fn element(&self, json: &Json, field: &Field) -> Result<()> {
        if *json == Json::Null
            && field.well_known != Some(WellKnown::Value)
            && !self.is_null_value(field.kind)
        {
            return problem("null in a list or a map");
        }
        Ok(())
    }

    fn map(
        &self,
        out: &mut Vec<u8>,
        field: &Field,
        entry: &MapEntry,
        entries: &[(String, Json)],
        depth: Depth,
    ) -> Result<()> {
        let mut seen = HashSet::new();
        for (key, value) in entries {
            let step = |error: JsonError| error.inside(&format!("[\"{key}\"]"));
            if !seen.insert(key) {
                return Err(step(JsonError::new("the key is there twice")));
            }
            self.element(value, &entry.value).map_err(step)?;
            let depth = enter(depth).map_err(step)?;
            let begin = out.len();
            put_varint(out, field.tag());
            let start = open(out);
            map_key(out, &entry.key, key).map_err(step)?;
            let before = out.len();
            self.tagged(out, &entry.value, value, depth).map_err(step)?;
            if out.len() == before {
                // An enum name that is ignored.
                out.truncate(begin);
                continue;
            }
            close(out, start);
        }
        Ok(())
    }

    /// A value with its tag; nothing for an enum name that is ignored.
    fn tagged(&self, out: &mut Vec<u8>, field: &Field, json: &Json, depth: Depth) -> Result<()> {
        match field.kind {
            Kind::Enum(id) => {
                if let Some(number) = self.enumeration(id, json)? {
                    put_varint(out, field.tag());
                    put_varint(out, i64::from(number) as u64);
                }
                Ok(())
            }
            Kind::Group(layout) => {
                put_varint(out, field.tag());
                self.message(out, layout, json, enter(depth)?)?;
                put_varint(
                    out,
                    u64::from(field.number) << 3 | u64::from(wire::GROUP_END),
                );
                Ok(())
            }
            Kind::Message(layout) => {
                put_varint(out, field.tag());
                let start = open(out);
                self.message(out, layout, json, enter(depth)?)?;
                close(out, start);
                Ok(())
            }
            kind => {
                put_varint(out, field.tag());
                scalar(out, kind, json)
            }
        }
    }

    fn enumeration(&self, id: EnumId, json: &Json) -> Result<Option<i32>> {
        let Some(kind) = self.schema.enumeration(id) else {
            return Ok(None);
        };
        match json {
            Json::Null if kind.name == "google.protobuf.NullValue" => Ok(Some(0)),
            Json::Text(name) => match kind.number(name) {
                Some(number) => Ok(Some(number)),
                None if self.ignore_unknown => Ok(None),
                None => problem(format!("{} has no value \"{name}\"", kind.name)),
            },
            json => {
                let number = integer(json, i32::MIN.into(), i32::MAX.into())? as i32;
                if kind.open || kind.contains(number) {
                    return Ok(Some(number));
                }
                if self.ignore_unknown {
                    return Ok(None);
                }
                problem(format!("{} has no value {number}", kind.name))
            }
        }
    }

    fn well_known(
        &self,
        out: &mut Vec<u8>,
        kind: WellKnown,
        json: &Json,
        depth: Depth,
    ) -> Result<()> {
        match kind {
            WellKnown::Timestamp => {
                let Json::Text(text) = json else {
                    return problem(format!(
                        "expected a string with a time, found {}",
                        json.kind()
                    ));
                };
                let (seconds, nanos) = parse_timestamp(text)?;
                seconds_and_nanos(out, seconds, nanos);
            }
            WellKnown::Wrapper(kind) => {
                put_varint(out, 1 << 3 | u64::from(kind.wire()));
                scalar(out, kind, json)?;
            }
            WellKnown::Value => dynamic(json, depth)?.put(out),
            WellKnown::Struct => match json {
                Json::Object(entries) => structure(entries, depth)?.put_fields(out),
                other => return problem(format!("expected an object, found {}", other.kind())),
            },
            WellKnown::ListValue => match json {
                Json::List(values) => list(values, depth)?.put_fields(out),
                other => return problem(format!("expected a list, found {}", other.kind())),
            },
        }
        Ok(())
    }

    fn any(&self, out: &mut Vec<u8>, json: &Json, depth: Depth) -> Result<()> {
        let Json::Object(entries) = json else {
            return problem(format!(
                "expected an object with \"@type\", found {}",
                json.kind()
            ));
        };
        if entries.is_empty() {
            return Ok(());
        }
        let Some((_, Json::Text(url))) = entries.iter().find(|(key, _)| key == "@type") else {
            return problem("\"@type\" is missing");
        };
        let name = match url.rsplit_once('/') {
            Some((_, name)) if !name.is_empty() => name,
            _ => {
                return problem(format!(
                    "\"@type\" is \"{url}\", expected a URL that ends in /NAME"
                ));
            }
        };
        let Some(id) = self.schema.message(name) else {
            return problem(format!(
                "\"@type\" names {name}, whose class has not been used here yet"
            ));
        };
        let depth = enter(depth)?;
        out.push(0x0A);
        put_delimited(out, url.as_bytes());
        out.push(0x12);
        let start = open(out);
        if has_own_json(name) {
            let null = Json::Null;
            let value = entries.iter().find(|(key, _)| key == "value");
            let value = match value {
                Some((_, value)) => value,
                None if WellKnown::of(name) == Some(WellKnown::Value) => &null,
                None => return problem(format!("\"value\" is missing for {name}")),
            };
            self.message(out, id, value, depth)?;
        } else if let Some(layout) = self.schema.layout(id) {
            let fields = entries.iter().filter(|(key, _)| key != "@type");
            self.fields(out, layout, fields, depth)?;
        }
        close(out, start);
        Ok(())
    }
}

/// `depth` is inside the `google.protobuf.Value`.
fn dynamic(json: &Json, depth: Depth) -> Result<Dynamic> {
    Ok(match json {
        Json::Null => Dynamic::Null,
        Json::Bool(value) => Dynamic::Bool(*value),
        Json::Int(number) => Dynamic::Number(*number as f64),
        Json::Float(number) => Dynamic::Number(*number),
        Json::Text(text) => Dynamic::Text(text.clone()),
        Json::List(values) => list(values, enter(depth)?)?,
        Json::Object(entries) => structure(entries, enter(depth)?)?,
    })
}

/// `depth` is inside the `google.protobuf.ListValue`.
fn list(values: &[Json], depth: Depth) -> Result<Dynamic> {
    let value = |value| dynamic(value, enter(depth)?);
    let values: Result<_> = values.iter().map(value).collect();
    Ok(Dynamic::List(values?))
}

/// `depth` is inside the `google.protobuf.Struct`, whose fields are entries of a map.
fn structure(entries: &[(String, Json)], depth: Depth) -> Result<Dynamic> {
    let field = |(key, value): &(String, Json)| {
        let depth = enter(enter(depth)?)?;
        Ok((key.clone(), dynamic(value, depth)?))
    };
    let fields: Result<_> = entries.iter().map(field).collect();
    Ok(Dynamic::Struct(fields?))
}

fn duration(out: &mut Vec<u8>, json: &Json) -> Result<()> {
    let Json::Text(text) = json else {
        return problem(format!(
            "expected a string with a duration, found {}",
            json.kind()
        ));
    };
    let (seconds, nanos) = parse_duration(text)?;
    seconds_and_nanos(out, seconds, nanos);
    Ok(())
}

fn seconds_and_nanos(out: &mut Vec<u8>, seconds: i64, nanos: i32) {
    out.push(0x08);
    put_varint(out, seconds as u64);
    out.push(0x10);
    put_varint(out, i64::from(nanos) as u64);
}

fn field_mask(out: &mut Vec<u8>, json: &Json) -> Result<()> {
    let Json::Text(text) = json else {
        return problem(format!(
            "expected a string with field names, found {}",
            json.kind()
        ));
    };
    for path in text.split(',').filter(|path| !path.is_empty()) {
        let mut snake = String::with_capacity(path.len() + 4);
        for character in path.chars() {
            match character {
                'A'..='Z' => {
                    snake.push('_');
                    snake.push(character.to_ascii_lowercase());
                }
                '_' => return problem("a field mask with an underscore"),
                _ => snake.push(character),
            }
        }
        out.push(0x0A);
        put_delimited(out, snake.as_bytes());
    }
    Ok(())
}

fn map_key(out: &mut Vec<u8>, field: &Field, key: &str) -> Result<()> {
    put_varint(out, field.tag());
    match (field.kind, key) {
        (Kind::Bool, "true") => scalar(out, Kind::Bool, &Json::Bool(true)),
        (Kind::Bool, "false") => scalar(out, Kind::Bool, &Json::Bool(false)),
        (kind, key) => scalar(out, kind, &Json::Text(key.to_owned())),
    }
}

fn scalar(out: &mut Vec<u8>, kind: Kind, json: &Json) -> Result<()> {
    match kind {
        Kind::Bool => match json {
            Json::Bool(value) => out.push((*value).into()),
            other => return problem(format!("expected a bool, found {}", other.kind())),
        },
        Kind::String => match json {
            Json::Text(text) => put_delimited(out, text.as_bytes()),
            other => return problem(format!("expected a string, found {}", other.kind())),
        },
        Kind::Bytes => match json {
            Json::Text(text) => put_delimited(out, &bytes(text)?),
            other => {
                return problem(format!(
                    "expected a string in base64, found {}",
                    other.kind()
                ));
            }
        },
        Kind::Double => out.extend_from_slice(&float(json)?.to_le_bytes()),
        Kind::Float => {
            let number = float(json)?;
            // Rounded first: the shortest text of the largest float is a little larger than it.
            let rounded = number as f32;
            if rounded.is_infinite() && number.is_finite() {
                return problem("a number that is too large for a float");
            }
            out.extend_from_slice(&rounded.to_le_bytes());
        }
        Kind::Int32 => put_varint(
            out,
            integer(json, i32::MIN.into(), i32::MAX.into())? as i64 as u64,
        ),
        Kind::Sint32 => put_varint(
            out,
            wire::zag32(integer(json, i32::MIN.into(), i32::MAX.into())? as i32).into(),
        ),
        Kind::Sfixed32 => {
            out.extend_from_slice(
                &(integer(json, i32::MIN.into(), i32::MAX.into())? as i32).to_le_bytes(),
            );
        }
        Kind::Uint32 => put_varint(out, integer(json, 0, u32::MAX.into())? as u64),
        Kind::Fixed32 => {
            out.extend_from_slice(&(integer(json, 0, u32::MAX.into())? as u32).to_le_bytes())
        }
        Kind::Uint64 => put_varint(out, integer(json, 0, u64::MAX.into())? as u64),
        Kind::Fixed64 => {
            out.extend_from_slice(&(integer(json, 0, u64::MAX.into())? as u64).to_le_bytes())
        }
        Kind::Sint64 => put_varint(
            out,
            wire::zag64(integer(json, i64::MIN.into(), i64::MAX.into())? as i64),
        ),
        Kind::Sfixed64 => {
            out.extend_from_slice(
                &(integer(json, i64::MIN.into(), i64::MAX.into())? as i64).to_le_bytes(),
            );
        }
        _ => put_varint(
            out,
            integer(json, i64::MIN.into(), i64::MAX.into())? as i64 as u64,
        ),
    }
    Ok(())
}

fn bytes(text: &str) -> Result<Vec<u8>> {
    let url_safe = text.contains(['-', '_']);
    let decoded = if url_safe {
        URL_SAFE.decode(text)
    } else {
        STANDARD.decode(text)
    };
    decoded.map_err(|_| JsonError::new("expected base64"))
}

/// A number, also one with an exponent or a fraction of zeros, also as a string.
fn integer(json: &Json, lowest: i128, highest: i128) -> Result<i128> {
    let number = match json {
        Json::Int(number) => Some(*number),
        Json::Float(number) => whole(*number),
        Json::Text(text) => match number_in(text) {
            Some(Json::Int(number)) => Some(number),
            Some(Json::Float(number)) => whole(number),
            _ => None,
        },
        _ => None,
    };
    match number {
        Some(number) if (lowest..=highest).contains(&number) => Ok(number),
        Some(number) => problem(format!("{number} is not between {lowest} and {highest}")),
        None => problem(format!("expected an integer, found {}", json.kind())),
    }
}

/// An integer that does not fit 64 bits arrives as a float, and -2^63 as one has lost the difference.
fn whole(number: f64) -> Option<i128> {
    const LOWEST: f64 = -9_223_372_036_854_775_808.0;
    const HIGHEST: f64 = 18_446_744_073_709_551_616.0;
    (number.fract() == 0.0 && number > LOWEST && number < HIGHEST).then_some(number as i128)
}

fn number_in(text: &str) -> Option<Json> {
    let starts = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    let ends = text.ends_with(|last: char| last.is_ascii_digit());
    (starts && ends)
        .then(|| Json::parse(text.as_bytes()).ok())
        .flatten()
}

fn float(json: &Json) -> Result<f64> {
    match json {
        Json::Int(number) => Ok(*number as f64),
        Json::Float(number) => Ok(*number),
        Json::Text(text) => match (text.as_str(), number_in(text)) {
            ("NaN", _) => Ok(f64::NAN),
            ("Infinity", _) => Ok(f64::INFINITY),
            ("-Infinity", _) => Ok(f64::NEG_INFINITY),
            (_, Some(Json::Int(number))) => Ok(number as f64),
            (_, Some(Json::Float(number))) => Ok(number),
            _ => problem("expected a number, found another string"),
        },
        other => problem(format!("expected a number, found {}", other.kind())),
    }
}
