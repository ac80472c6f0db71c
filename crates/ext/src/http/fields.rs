//! Header fields and status between PHP and core.

use std::cell::RefCell;
use std::rc::Rc;

use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, ZendStr, Zval};

use weft_core::http::header::{HeaderName, HeaderValue};
use weft_core::http::{Body, EncodedFields, HeaderMap, Response, StatusCode};

use crate::amqp_table::binary;
use crate::convert::array_zval;
use crate::failure::Failure;
use crate::zend::{is_constant, is_constant_array};

/// All fields of that name, as one value would say it (RFC 9110 §5.3); cookies have a separator of their own.
pub fn joined(headers: &HeaderMap, name: &str) -> Option<Zval> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    let Some(second) = values.next() else {
        return Some(binary(first.as_bytes()));
    };
    let separator: &[u8] = match name.eq_ignore_ascii_case("cookie") {
        true => b"; ",
        false => b", ",
    };
    let mut all = first.as_bytes().to_vec();
    for value in std::iter::once(second).chain(values) {
        all.extend_from_slice(separator);
        all.extend_from_slice(value.as_bytes());
    }
    Some(binary(&all))
}

/// `[name => [value, …]]`, names in lower case.
pub fn fields(headers: &HeaderMap) -> PhpResult<Zval> {
    let mut fields = ZendHashTable::with_capacity(headers.keys_len() as u32);
    for name in headers.keys() {
        let mut values = ZendHashTable::new();
        for value in headers.get_all(name) {
            values.push(binary(value.as_bytes()))?;
        }
        fields.insert(name.as_str(), array_zval(values))?;
    }
    Ok(array_zval(fields))
}

pub fn response(status: i64, headers: &ZendHashTable, body: Body) -> PhpResult<Response<Body>> {
    let mut response = Response::new(body);
    *response.status_mut() = final_status(status)?;
    *response.headers_mut() = header_map(headers)?;
    Ok(response)
}

pub fn final_status(status: i64) -> PhpResult<StatusCode> {
    let code = u16::try_from(status)
        .ok()
        .and_then(|code| StatusCode::from_u16(code).ok())
        .filter(|code| !code.is_informational());
    let code = code.ok_or_else(|| {
        let message = format!("there is no final status {status}: it must be 200 to 999");
        Failure::new("usage", message)
    })?;
    Ok(code)
}

thread_local! {
    /// Heads whose fields stand in PHP's code, by the address of PHP's array: they are the same in most answers. Checked by content, for
    /// an address may be used again.
    static HEADS: RefCell<[Option<Head>; 16]> = const { RefCell::new([const { None }; 16]) };
}

/// Fields of an array and what they are on the wire.
struct Head {
    /// Names and values.
    fields: Vec<[Box<[u8]>; 2]>,
    encoded: Rc<EncodedFields>,
}

impl Head {
    fn is_of(&self, headers: &ZendHashTable) -> bool {
        let mut entries = headers.iter();
        headers.len() == self.fields.len()
            && self.fields.iter().all(|[name, value]| {
                entries.next_zval().is_some_and(|(key, field)| {
                    let is = |text: &Zval, known: &[u8]| {
                        text.zend_str().is_some_and(|text| text.as_bytes() == known)
                    };
                    is(&key, name) && is(field, value)
                })
            })
    }
}

/// The fields on the wire, if they stand in PHP's code with one value each and frame nothing.
pub fn encoded(headers: &ZendHashTable) -> Option<Rc<EncodedFields>> {
    if !is_constant_array(headers) {
        return None;
    }
    let place = (std::ptr::from_ref(headers) as usize >> 4) % 16;
    let known = HEADS.with_borrow(|heads| {
        let head = heads[place].as_ref().filter(|head| head.is_of(headers))?;
        Some(Rc::clone(&head.encoded))
    });
    if known.is_some() {
        return known;
    }
    // Not while the cache is borrowed: a refused field makes an exception, and with it PHP code that may send another response.
    let head = encode(headers)?;
    let encoded = Rc::clone(&head.encoded);
    HEADS.with_borrow_mut(|heads| heads[place] = Some(head));
    Some(encoded)
}

#[cold]
fn encode(headers: &ZendHashTable) -> Option<Head> {
    let mut fields = Vec::with_capacity(headers.len());
    let mut entries = headers.iter();
    while let Some((key, value)) = entries.next_zval() {
        fields.push([
            key.zend_str()?.as_bytes().into(),
            value.zend_str()?.as_bytes().into(),
        ]);
    }
    // The slow path reports which field is invalid.
    let encoded = EncodedFields::encode(&header_map(headers).ok()?)?;
    let encoded = Rc::new(encoded);
    Some(Head { fields, encoded })
}

thread_local! {
    /// Fields whose value stands in PHP's code, by the address of PHP's string: they are the same in most answers. Checked by
    /// content, for an address may be used again.
    static CONSTANT: RefCell<[Option<(HeaderName, HeaderValue)>; 16]> = const { RefCell::new([const { None }; 16]) };
}

/// A field with one value.
fn field(key: &[u8], value: &Zval) -> PhpResult<(HeaderName, HeaderValue)> {
    let constant = value.zend_str().filter(|text| is_constant(text));
    let Some(text) = constant else {
        let name = header_name(key)?;
        let value = header_value(&name, value)?;
        return Ok((name, value));
    };
    let place = (std::ptr::from_ref(text) as usize >> 4) % 16;
    let known = CONSTANT.with_borrow(|fields| {
        let is_it = |(name, value): &&(HeaderName, HeaderValue)| {
            name.as_str().as_bytes() == key && value.as_bytes() == text.as_bytes()
        };
        fields[place].as_ref().filter(is_it).cloned()
    });
    if let Some(field) = known {
        return Ok(field);
    }
    // Not while the cache is borrowed: see `encoded`.
    let name = header_name(key)?;
    let field = (name.clone(), header_value(&name, value)?);
    CONSTANT.with_borrow_mut(|fields| fields[place] = Some(field.clone()));
    Ok(field)
}

fn header_name(key: &[u8]) -> PhpResult<HeaderName> {
    let name = HeaderName::from_bytes(key).map_err(|_| {
        let key = String::from_utf8_lossy(key);
        Failure::new(
            "usage",
            format!("\"{key}\" is not a name of a header field"),
        )
    })?;
    Ok(name)
}

/// `[name => value]` or `[name => [value, …]]`.
pub fn header_map(headers: &ZendHashTable) -> PhpResult<HeaderMap> {
    let mut map = HeaderMap::with_capacity(headers.len() + 2);
    let mut entries = headers.iter();
    while let Some((key, value)) = entries.next_zval() {
        if let Some(number) = key.long() {
            let message =
                format!("header fields are [name => value], got the number {number} as a name");
            return Err(Failure::new("usage", message).into());
        }
        let key = key.zend_str().map(ZendStr::as_bytes).unwrap_or_default();
        match value.array() {
            None => {
                let (name, value) = field(key, value)?;
                map.append(name, value);
            }
            Some(values) => {
                let name = header_name(key)?;
                for value in crate::array::values(values) {
                    map.append(&name, header_value(&name, value)?);
                }
            }
        }
    }
    Ok(map)
}

fn header_value(name: &HeaderName, value: &Zval) -> PhpResult<HeaderValue> {
    let refuse = |what: &str| Failure::new("usage", format!("the header field {name} {what}"));
    if let Some(number) = value.long() {
        return Ok(HeaderValue::from(number));
    }
    let text = value
        .dereference()
        .zend_str()
        .ok_or_else(|| refuse("must be a string, an int or a list of them"))?;
    HeaderValue::from_bytes(text.as_bytes())
        .map_err(|_| refuse("has a line break or another character that is not allowed").into())
}
