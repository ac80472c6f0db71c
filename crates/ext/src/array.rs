//! Reading PHP arrays.
//!
//! The array must not change while it is read. An argument of a native call cannot: the frame of the call has a reference
//! to it until the call returns, and PHP copies an array that more than one owner refers to before it writes to it. An
//! array behind a PHP reference can, as soon as PHP code runs: it needs [`Held`](crate::zend::Held).

use ext_php_rs::convert::FromZval;
use ext_php_rs::flags::DataType;
use ext_php_rs::types::{ZendHashTable, Zval};

use crate::zend::packed;

/// Keys and values. Keys are values here, because the typed keys of ext-php-rs panic where one is not UTF-8.
pub fn entries(array: &ZendHashTable) -> impl Iterator<Item = (Zval, &Zval)> {
    let mut entries = array.iter();
    std::iter::from_fn(move || entries.next_zval())
}

/// The values, regardless of their keys.
pub fn values(array: &ZendHashTable) -> impl Iterator<Item = &Zval> {
    entries(array).map(|(_, value)| value)
}

/// An argument that is an array of values of one type, regardless of their keys: a `Vec` would be read by typed keys.
pub struct Values<T>(pub Vec<T>);

impl<'a, T: FromZval<'a>> FromZval<'a> for Values<T> {
    const TYPE: DataType = DataType::Array;

    fn from_zval(zval: &'a Zval) -> Option<Self> {
        values(zval.array()?)
            .map(T::from_zval)
            .collect::<Option<_>>()
            .map(Self)
    }
}

/// The values of an array whose keys are 0, 1, 2, …; none when they are not.
pub fn list(array: &ZendHashTable) -> Option<impl Iterator<Item = &Zval>> {
    if let Some(values) = packed(array) {
        return Some(List::Packed(values.iter()));
    }
    let mut values = Vec::with_capacity(array.len());
    for (key, value) in entries(array) {
        if key.long() != Some(values.len() as i64) {
            return None;
        }
        values.push(value);
    }
    Some(List::Collected(values.into_iter()))
}

/// The two ways PHP holds a list.
enum List<'a> {
    Packed(std::slice::Iter<'a, Zval>),
    Collected(std::vec::IntoIter<&'a Zval>),
}

impl<'a> Iterator for List<'a> {
    type Item = &'a Zval;

    fn next(&mut self) -> Option<&'a Zval> {
        match self {
            Self::Packed(values) => values.next(),
            Self::Collected(values) => values.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Packed(values) => values.size_hint(),
            Self::Collected(values) => values.size_hint(),
        }
    }
}
