//! PHP strings that have to be UTF-8.

use std::fmt;

use ext_php_rs::convert::FromZval;
use ext_php_rs::flags::DataType;
use ext_php_rs::types::{ZendHashTable, Zval};

use crate::array::entries;
use crate::failure::Failure;

/// A string argument. Where `&str` would leave it to ext-php-rs to refuse what is not UTF-8 by the parameter's name only,
/// a method that takes this says which object is wrong, and where.
#[derive(Clone, Copy)]
pub struct Text<'a>(&'a [u8]);

/// The first byte that makes a string no UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotUtf8 {
    byte: u8,
    offset: usize,
}

impl<'a> Text<'a> {
    pub fn utf8(self) -> Result<&'a str, NotUtf8> {
        std::str::from_utf8(self.0).map_err(|error| {
            let offset = error.valid_up_to();
            NotUtf8 {
                byte: self.0.get(offset).copied().unwrap_or_default(),
                offset,
            }
        })
    }

    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// For messages: what cannot be read is replaced.
    pub fn lossy(self) -> String {
        String::from_utf8_lossy(self.0).into_owned()
    }
}

impl<'a> FromZval<'a> for Text<'a> {
    const TYPE: DataType = DataType::String;

    fn from_zval(zval: &'a Zval) -> Option<Self> {
        zval.zend_str().map(|text| Self(text.as_bytes()))
    }
}

impl fmt::Display for NotUtf8 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { byte, offset } = self;
        write!(formatter, "not UTF-8: byte 0x{byte:02X} at offset {offset}")
    }
}

/// Names and values of an array that maps strings to strings, numbers or booleans. Objects are refused rather than
/// converted, so that no PHP code runs while the array is read.
pub fn pairs(array: &ZendHashTable) -> Result<Vec<(String, String)>, Failure> {
    entries(array)
        .map(|(key, value)| {
            let name = scalar(&key).unwrap_or_default();
            let text = scalar(value.dereference()).ok_or_else(|| {
                Failure::new("usage", format!("the value of \"{name}\" must be a string"))
            })?;
            Ok((name, text))
        })
        .collect()
}

fn scalar(value: &Zval) -> Option<String> {
    match value.zend_str() {
        Some(text) => Some(String::from_utf8_lossy(text.as_bytes()).into_owned()),
        None if value.is_object() => None,
        None => value.coerce_to_string(),
    }
}
