use std::sync::Arc;

use super::text::{self, Malformed};
use super::types::{self, Oid, Type};
use crate::sql::{Column, Value};

/// The columns of a result: names and decoders.
#[derive(Debug, Clone, Default)]
pub(super) struct RowShape {
    pub(super) columns: Arc<[Column]>,
    pub(super) decoders: Arc<[Decoder]>,
}

/// The decoder of one column, chosen once per statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decoder {
    kind: Kind,
    /// Requests the binary form for types for which it is cheaper than the text form.
    pub(super) binary: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Bytea,
    Uuid,
    Json,
    Date,
    Timestamp,
    Text,
    Array(Scalar),
}

/// The OID of an array's element.
type Scalar = Oid;

impl RowShape {
    pub(super) fn new(columns: Vec<(String, Type)>, binary: bool) -> Self {
        let decoders = columns
            .iter()
            .map(|(_, kind)| Decoder::new(kind, binary))
            .collect();
        let columns = columns
            .into_iter()
            .map(|(name, kind)| Column {
                name,
                type_name: kind.name,
            })
            .collect();
        Self { columns, decoders }
    }

    /// Reads the body of a `DataRow`.
    pub(super) fn decode(&self, body: &[u8]) -> Result<Vec<Value>, Malformed> {
        let (count, mut rest) = body.split_first_chunk().ok_or(Malformed)?;
        if usize::from(u16::from_be_bytes(*count)) != self.decoders.len() {
            return Err(Malformed);
        }
        let mut row = Vec::with_capacity(self.decoders.len());
        for decoder in self.decoders.iter() {
            let (length, tail) = rest.split_first_chunk().ok_or(Malformed)?;
            rest = tail;
            match usize::try_from(i32::from_be_bytes(*length)) {
                Err(_) => row.push(Value::Null),
                Ok(length) => {
                    let (value, tail) = rest.split_at_checked(length).ok_or(Malformed)?;
                    rest = tail;
                    row.push(decoder.decode(value)?);
                }
            }
        }
        if rest.is_empty() {
            Ok(row)
        } else {
            Err(Malformed)
        }
    }
}

impl Decoder {
    fn new(column: &Type, binary: bool) -> Self {
        let kind = match column.element {
            Some(element) => Kind::Array(element),
            None => Kind::of(column.oid),
        };
        Self {
            kind,
            binary: binary && kind.is_cheaper_in_binary(),
        }
    }

    fn decode(self, bytes: &[u8]) -> Result<Value, Malformed> {
        if self.binary {
            self.kind.decode_binary(bytes)
        } else {
            self.kind.decode_text(bytes)
        }
    }
}

impl Kind {
    fn of(oid: Oid) -> Self {
        match oid {
            types::BOOL => Self::Bool,
            types::INT2 => Self::Int2,
            types::INT4 => Self::Int4,
            types::INT8 => Self::Int8,
            types::OID => Self::Oid,
            types::FLOAT4 => Self::Float4,
            types::FLOAT8 => Self::Float8,
            types::BYTEA => Self::Bytea,
            types::UUID => Self::Uuid,
            types::JSON | types::JSONB => Self::Json,
            types::DATE => Self::Date,
            types::TIMESTAMP | types::TIMESTAMPTZ => Self::Timestamp,
            _ => Self::Text,
        }
    }

    fn is_cheaper_in_binary(self) -> bool {
        matches!(
            self,
            Self::Bool
                | Self::Int2
                | Self::Int4
                | Self::Int8
                | Self::Oid
                | Self::Float4
                | Self::Float8
                | Self::Bytea
                | Self::Uuid
        )
    }

    fn decode_binary(self, bytes: &[u8]) -> Result<Value, Malformed> {
        Ok(match self {
            Self::Bool => Value::Bool(exactly::<1>(bytes)? != [0]),
            Self::Int2 => Value::Int(i16::from_be_bytes(exactly(bytes)?).into()),
            Self::Int4 => Value::Int(i32::from_be_bytes(exactly(bytes)?).into()),
            Self::Int8 => Value::Int(i64::from_be_bytes(exactly(bytes)?)),
            Self::Oid => Value::Int(u32::from_be_bytes(exactly(bytes)?).into()),
            Self::Float4 => Value::Float(widen(f32::from_be_bytes(exactly(bytes)?))),
            Self::Float8 => Value::Float(f64::from_be_bytes(exactly(bytes)?)),
            Self::Bytea => Value::Bytes(bytes.to_vec()),
            Self::Uuid => Value::Text(text::write_uuid(&exactly(bytes)?)),
            _ => return self.decode_text(bytes),
        })
    }

    fn decode_text(self, bytes: &[u8]) -> Result<Value, Malformed> {
        // A database in SQL_ASCII returns bytes as they were stored.
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Ok(Value::Bytes(bytes.to_vec()));
        };
        Ok(match self {
            Self::Bool => Value::Bool(text == "t"),
            Self::Int2 | Self::Int4 | Self::Int8 | Self::Oid => {
                Value::Int(text.parse().map_err(|_| Malformed)?)
            }
            Self::Float4 | Self::Float8 => Value::Float(text.parse().map_err(|_| Malformed)?),
            Self::Bytea => Value::Bytes(text::read_bytea(bytes)?),
            Self::Json => Value::Json(text.to_owned()),
            Self::Date => Value::Date(text.to_owned()),
            Self::Timestamp => Value::Timestamp(text::read_timestamp(text)),
            Self::Uuid | Self::Text => Value::Text(text.to_owned()),
            Self::Array(element) => {
                let kind = Self::of(element);
                text::read_array(text, &mut |item| kind.decode_text(item.as_bytes()))?
            }
        })
    }
}

/// Converts `0.1f32` to `0.1`, as its text form does, and not to `0.10000000149011612`.
fn widen(narrow: f32) -> f64 {
    if narrow.is_finite() {
        narrow.to_string().parse().unwrap_or_else(|_| narrow.into())
    } else {
        narrow.into()
    }
}

fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Malformed> {
    bytes.try_into().map_err(|_| Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(oids: &[Oid]) -> RowShape {
        let columns = oids
            .iter()
            .map(|&oid| (String::new(), Type::built_in(oid).unwrap()))
            .collect();
        RowShape::new(columns, true)
    }

    #[test]
    fn no_cut_of_a_row_is_taken_for_a_row() {
        let row = [0, 2, 0, 0, 0, 4, 0, 0, 0, 7, 255, 255, 255, 255];
        let shape = shape(&[types::INT4, types::TEXT]);
        assert_eq!(shape.decode(&row), Ok(vec![Value::Int(7), Value::Null]));
        for end in 0..row.len() {
            assert_eq!(shape.decode(&row[..end]), Err(Malformed), "cut at {end}");
        }
        assert_eq!(shape.decode(&[&row[..], &[0]].concat()), Err(Malformed));
    }

    #[test]
    fn a_number_of_the_wrong_width_is_refused() {
        let row = [0, 1, 0, 0, 0, 3, 0, 0, 7];
        assert_eq!(shape(&[types::INT4]).decode(&row), Err(Malformed));
    }

    #[test]
    fn a_float4_keeps_its_decimal_form() {
        assert_eq!(widen(0.1), 0.1);
        assert!(widen(f32::NAN).is_nan());
    }
}
