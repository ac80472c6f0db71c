use bytes::{BufMut, BytesMut};
use postgres_protocol::IsNull;

use super::text;
use super::types::{self, Oid, Type};
use crate::sql::Value;

/// The reason why a value does not fit its parameter, without the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TypeMismatch {
    #[error("expects {expected}, got {given}")]
    Kind {
        expected: String,
        given: &'static str,
    },
    #[error("is out of range for {expected}")]
    Range { expected: String },
    #[error("contains a NUL byte, which PostgreSQL text cannot hold")]
    Nul,
    #[error("holds {given}, which has no place in {expected}")]
    Element {
        expected: String,
        given: &'static str,
    },
}

/// An encoded parameter.
pub(super) enum Encoded<'a> {
    Null,
    Bool(bool),
    Int2(i16),
    Int4(i32),
    Int8(i64),
    Oid(u32),
    Float4(f32),
    Float8(f64),
    Uuid([u8; 16]),
    Bytes(&'a [u8]),
    Text(&'a str),
    Written(String),
}

impl Encoded<'_> {
    /// The format code of the `Bind` message: 1 for binary.
    pub(super) fn format(&self) -> i16 {
        match self {
            Self::Null | Self::Text(_) | Self::Written(_) => 0,
            _ => 1,
        }
    }

    pub(super) fn write(&self, out: &mut BytesMut) -> IsNull {
        match self {
            Self::Null => return IsNull::Yes,
            Self::Bool(bool) => out.put_u8((*bool).into()),
            Self::Int2(int) => out.put_i16(*int),
            Self::Int4(int) => out.put_i32(*int),
            Self::Int8(int) => out.put_i64(*int),
            Self::Oid(oid) => out.put_u32(*oid),
            Self::Float4(float) => out.put_f32(*float),
            Self::Float8(float) => out.put_f64(*float),
            Self::Uuid(bytes) => out.put_slice(bytes),
            Self::Bytes(bytes) => out.put_slice(bytes),
            Self::Text(text) => out.put_slice(text.as_bytes()),
            Self::Written(text) => out.put_slice(text.as_bytes()),
        }
        IsNull::No
    }
}

/// Encodes a value for a parameter of a known type.
///
/// The server parses text for any type. Only for `bytea` text means its own bytes.
pub(super) fn encode<'a>(value: &'a Value, parameter: &Type) -> Result<Encoded<'a>, TypeMismatch> {
    match parameter.oid {
        _ if matches!(value, Value::Null) => Ok(Encoded::Null),
        types::BYTEA => encode_bytea(value, parameter),
        types::JSON | types::JSONB => encode_json(value, parameter),
        _ if text_of(value).is_some() => encode_written(value, parameter),
        types::BOOL => encode_bool(value, parameter),
        types::INT2 | types::INT4 | types::INT8 | types::OID => encode_int(value, parameter),
        types::FLOAT4 | types::FLOAT8 => encode_float(value, parameter),
        types::UUID => encode_uuid_bytes(value, parameter),
        _ if parameter.element.is_some() => encode_array(value, parameter),
        types::DATE
        | types::TIME
        | types::TIMETZ
        | types::TIMESTAMP
        | types::TIMESTAMPTZ
        | types::INTERVAL => Err(wrong_kind(value, parameter)),
        _ => encode_as_text(value, parameter),
    }
}

/// Encodes a value as text for a parameter of unknown type.
pub(super) fn encode_untyped(value: &Value) -> Result<Encoded<'_>, TypeMismatch> {
    let unknown = Type::unknown(0);
    match value {
        Value::Null => Ok(Encoded::Null),
        Value::Bytes(bytes) => Ok(Encoded::Written(text::write_hex(bytes))),
        Value::List(_) => encode_array(value, &unknown),
        _ => encode_as_text(value, &unknown),
    }
}

fn encode_written<'a>(value: &'a Value, parameter: &Type) -> Result<Encoded<'a>, TypeMismatch> {
    let text = text_of(value).unwrap_or_default();
    if parameter.oid == types::UUID
        && let Some(bytes) = text::read_uuid(text)
    {
        return Ok(Encoded::Uuid(bytes));
    }
    without_nul(text)
}

fn encode_bytea<'a>(value: &'a Value, parameter: &Type) -> Result<Encoded<'a>, TypeMismatch> {
    match value {
        Value::Bytes(bytes) => Ok(Encoded::Bytes(bytes)),
        _ => text_of(value)
            .map(|text| Encoded::Bytes(text.as_bytes()))
            .ok_or_else(|| wrong_kind(value, parameter)),
    }
}

fn encode_json<'a>(value: &'a Value, parameter: &Type) -> Result<Encoded<'a>, TypeMismatch> {
    // A text is a document that the application has encoded; a time is a value of a document.
    if let Value::Text(text) | Value::Json(text) = value {
        return without_nul(text);
    }
    let mut out = String::new();
    write_json(value, parameter, &mut out)?;
    Ok(Encoded::Written(out))
}

fn encode_bool<'a>(value: &Value, parameter: &Type) -> Result<Encoded<'a>, TypeMismatch> {
    match value {
        Value::Bool(bool) => Ok(Encoded::Bool(*bool)),
        Value::Int(0) => Ok(Encoded::Bool(false)),
        Value::Int(1) => Ok(Encoded::Bool(true)),
        Value::Int(_) => Err(out_of_range(parameter)),
        _ => Err(wrong_kind(value, parameter)),
    }
}

fn encode_int<'a>(value: &Value, parameter: &Type) -> Result<Encoded<'a>, TypeMismatch> {
    let int = match value {
        Value::Int(int) => *int,
        Value::Bool(bool) => (*bool).into(),
        Value::Float(float) => whole(*float).ok_or_else(|| wrong_kind(value, parameter))?,
        _ => return Err(wrong_kind(value, parameter)),
    };
    match parameter.oid {
        types::INT2 => int.try_into().map(Encoded::Int2),
        types::INT4 => int.try_into().map(Encoded::Int4),
        types::OID => int.try_into().map(Encoded::Oid),
        _ => Ok(Encoded::Int8(int)),
    }
    .map_err(|_| out_of_range(parameter))
}

fn encode_float<'a>(value: &Value, parameter: &Type) -> Result<Encoded<'a>, TypeMismatch> {
    let float = match value {
        Value::Float(float) => *float,
        Value::Int(int) => *int as f64,
        _ => return Err(wrong_kind(value, parameter)),
    };
    if parameter.oid == types::FLOAT8 {
        return Ok(Encoded::Float8(float));
    }
    let narrow = float as f32;
    if narrow.is_infinite() && float.is_finite() {
        return Err(out_of_range(parameter));
    }
    Ok(Encoded::Float4(narrow))
}

fn encode_uuid_bytes<'a>(value: &Value, parameter: &Type) -> Result<Encoded<'a>, TypeMismatch> {
    match value {
        Value::Bytes(bytes) => bytes
            .as_slice()
            .try_into()
            .map(Encoded::Uuid)
            .map_err(|_| wrong_kind(value, parameter)),
        _ => Err(wrong_kind(value, parameter)),
    }
}

fn encode_array<'a>(value: &Value, parameter: &Type) -> Result<Encoded<'a>, TypeMismatch> {
    let Value::List(list) = value else {
        return Err(wrong_kind(value, parameter));
    };
    let mut literal = String::new();
    text::write_array(list, &mut literal).map_err(|given| TypeMismatch::Element {
        expected: name_of(parameter),
        given,
    })?;
    Ok(Encoded::Written(literal))
}

fn encode_as_text<'a>(value: &'a Value, parameter: &Type) -> Result<Encoded<'a>, TypeMismatch> {
    match value {
        Value::Bool(bool) => Ok(Encoded::Text(if *bool { "true" } else { "false" })),
        Value::Int(int) => Ok(Encoded::Written(int.to_string())),
        Value::Float(float) => Ok(Encoded::Written(text::write_float(*float))),
        _ => match text_of(value) {
            Some(text) => without_nul(text),
            None => Err(wrong_kind(value, parameter)),
        },
    }
}

fn write_json(value: &Value, parameter: &Type, out: &mut String) -> Result<(), TypeMismatch> {
    let refused = |given| TypeMismatch::Element {
        expected: name_of(parameter),
        given,
    };
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        Value::Int(int) => out.push_str(&int.to_string()),
        Value::Float(float) if float.is_finite() => out.push_str(&text::write_float(*float)),
        Value::Float(_) => return Err(refused("a number that is not finite")),
        Value::Json(json) => out.push_str(json),
        Value::Text(text) | Value::Date(text) | Value::Timestamp(text) => {
            out.push_str(&serde_json::Value::from(text.as_str()).to_string());
        }
        Value::Bytes(_) => return Err(refused("bytes")),
        Value::List(list) => {
            for (index, item) in list.iter().enumerate() {
                out.push(if index == 0 { '[' } else { ',' });
                write_json(item, parameter, out)?;
            }
            out.push_str(if list.is_empty() { "[]" } else { "]" });
        }
    }
    Ok(())
}

fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) | Value::Json(text) | Value::Date(text) | Value::Timestamp(text) => {
            Some(text)
        }
        _ => None,
    }
}

fn without_nul<'a>(text: &'a str) -> Result<Encoded<'a>, TypeMismatch> {
    if text.contains('\0') {
        return Err(TypeMismatch::Nul);
    }
    Ok(Encoded::Text(text))
}

/// The integer with the same value as a float, if there is one.
fn whole(float: f64) -> Option<i64> {
    // 2^63 is the first float beyond the range; -2^63 is inside.
    let inside = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float);
    (inside && float.fract() == 0.0).then_some(float as i64)
}

fn wrong_kind(value: &Value, parameter: &Type) -> TypeMismatch {
    TypeMismatch::Kind {
        expected: name_of(parameter),
        given: kind_of(value),
    }
}

fn out_of_range(parameter: &Type) -> TypeMismatch {
    TypeMismatch::Range {
        expected: name_of(parameter),
    }
}

fn name_of(parameter: &Type) -> String {
    match (parameter.oid, parameter.name.as_str()) {
        (0, _) => "text".to_owned(),
        (oid, "") => format!("the type with OID {oid}"),
        (_, name) => match name.strip_prefix('_') {
            Some(element) => format!("{element}[]"),
            None => name.to_owned(),
        },
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Int(_) => "an int",
        Value::Float(_) => "a float",
        Value::Text(_) => "text",
        Value::Bytes(_) => "bytes",
        Value::Json(_) => "JSON",
        Value::Date(_) => "a date",
        Value::Timestamp(_) => "a timestamp",
        Value::List(_) => "a list (for a comparison with its values write = ANY(?), not IN (?))",
    }
}

/// The OIDs of types that need no look-up for a `Bind`.
pub(super) fn is_known(oid: Oid) -> bool {
    oid == 0 || Type::built_in(oid).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(value: &Value, oid: Oid) -> Result<Vec<u8>, String> {
        let mut out = BytesMut::new();
        encode(value, &Type::built_in(oid).unwrap())
            .map_err(|mismatch| mismatch.to_string())?
            .write(&mut out);
        Ok(out.to_vec())
    }

    #[test]
    fn an_int_fits_every_number_type_in_its_range() {
        let int = Value::Int(300);
        assert_eq!(encoded(&int, types::INT2), Ok(vec![1, 44]));
        assert_eq!(encoded(&int, types::INT4), Ok(vec![0, 0, 1, 44]));
        assert_eq!(
            encoded(&int, types::FLOAT8),
            Ok(300f64.to_be_bytes().to_vec())
        );
        assert_eq!(encoded(&int, types::NUMERIC), Ok(b"300".to_vec()));
        assert_eq!(encoded(&int, types::TEXT), Ok(b"300".to_vec()));
        assert_eq!(
            encoded(&Value::Int(40_000), types::INT2),
            Err("is out of range for int2".into())
        );
        assert_eq!(
            encoded(&Value::Int(-1), types::OID),
            Err("is out of range for oid".into())
        );
    }

    #[test]
    fn a_float_is_an_int_only_when_nothing_is_lost() {
        assert_eq!(
            encoded(&Value::Float(3.0), types::INT4),
            Ok(vec![0, 0, 0, 3])
        );
        assert_eq!(
            encoded(&Value::Float(3.5), types::INT4),
            Err("expects int4, got a float".into())
        );
        assert_eq!(
            encoded(&Value::Float(9_223_372_036_854_775_808.0), types::INT8),
            Err("expects int8, got a float".into())
        );
        assert_eq!(
            encoded(&Value::Float(1e300), types::FLOAT4),
            Err("is out of range for float4".into())
        );
    }

    #[test]
    fn bytes_are_no_number_and_no_text() {
        let bytes = Value::Bytes(b"secret".to_vec());
        assert_eq!(
            encoded(&bytes, types::INT4),
            Err("expects int4, got bytes".into())
        );
        assert_eq!(
            encoded(&bytes, types::TEXT),
            Err("expects text, got bytes".into())
        );
        assert_eq!(encoded(&bytes, types::BYTEA), Ok(b"secret".to_vec()));
    }

    #[test]
    fn text_for_bytea_stands_for_its_own_bytes() {
        assert_eq!(
            encoded(&Value::Text("\\x41".into()), types::BYTEA),
            Ok(b"\\x41".to_vec())
        );
        assert_eq!(
            encoded(&Value::Text("a\0".into()), types::BYTEA),
            Ok(b"a\0".to_vec())
        );
    }

    #[test]
    fn a_nul_byte_in_text_is_refused() {
        let message = encoded(&Value::Text("a\0b".into()), types::TEXT).unwrap_err();
        assert!(message.contains("NUL"), "{message}");
        let list = Value::List(vec![Value::Text("a\0b".into())]);
        let message = encoded(&list, 1009).unwrap_err();
        assert_eq!(
            message,
            "holds text with a NUL byte, which has no place in text[]"
        );
    }

    #[test]
    fn a_list_is_an_array_or_json_as_the_parameter_asks() {
        let list = Value::List(vec![
            Value::Int(1),
            Value::Text("a\"b".into()),
            Value::Null,
            Value::List(vec![]),
        ]);
        assert_eq!(
            encoded(&list, types::JSONB),
            Ok(br#"[1,"a\"b",null,[]]"#.to_vec())
        );
        assert_eq!(encoded(&list, 1009), Ok(br#"{1,"a\"b",NULL,{}}"#.to_vec()));
        assert_eq!(
            encoded(&list, types::TEXT),
            Err("expects text, got a list (for a comparison with its values write = ANY(?), not IN (?))".into())
        );
    }

    #[test]
    fn a_uuid_travels_in_binary_and_an_odd_spelling_is_left_to_the_server() {
        let text = Value::Text("0190a5b0-7c4d-7abc-8def-0123456789ab".into());
        assert_eq!(encoded(&text, types::UUID).unwrap().len(), 16);
        let braces = Value::Text("{0190a5b0-7c4d-7abc-8def-0123456789ab}".into());
        assert_eq!(encoded(&braces, types::UUID).unwrap().len(), 38);
    }
}
