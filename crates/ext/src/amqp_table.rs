//! AMQP tables, properties and topologies between PHP arrays and `weft-core`.

use std::borrow::Cow;

use ext_php_rs::boxed::ZBox;
use ext_php_rs::convert::FromZval;
use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, ZendStr, Zval};

use weft_core::amqp::{Binding, Exchange, Field, FieldTable, Properties, Queue, Topology};

use crate::array::{list, values};
use crate::convert::array_zval;
use crate::failure::Failure;
use crate::text::Text;

/// Survives a broker restart in a durable queue.
const PERSISTENT: u8 = 2;
const TRANSIENT: u8 = 1;
/// Nested arrays; the limit that `weft-core` applies when it reads. A PHP array may even contain itself.
const MAX_DEPTH: usize = 32;

fn usage(message: String) -> PhpException {
    Failure::new("usage", message).into()
}

// --- PHP to AMQP ----------------------------------------------------------------------------------------------------

pub fn properties<'a>(
    given: &'a ZendHashTable,
    headers: &'a ZendHashTable,
    persistent: bool,
) -> PhpResult<Properties<'a>> {
    let mut properties = Properties {
        delivery_mode: Some(if persistent { PERSISTENT } else { TRANSIENT }),
        headers: table(headers, 0)?,
        ..Properties::default()
    };
    let mut entries = given.iter();
    while let Some((key, value)) = entries.next_zval() {
        set_property(&mut properties, &name(key)?, value.dereference())?;
    }
    Ok(properties)
}

fn set_property<'a>(properties: &mut Properties<'a>, name: &str, value: &'a Zval) -> PhpResult<()> {
    let text = || {
        let text = value.str().map(Cow::Borrowed);
        text.ok_or_else(|| usage(format!("AMQP property {name} must be a string")))
    };
    let number = || {
        let number = value.long().and_then(|number| u64::try_from(number).ok());
        number.ok_or_else(|| {
            usage(format!(
                "AMQP property {name} must be an integer of at least 0"
            ))
        })
    };
    match name {
        "contentType" => properties.content_type = Some(text()?),
        "contentEncoding" => properties.content_encoding = Some(text()?),
        "correlationId" => properties.correlation_id = Some(text()?),
        "replyTo" => properties.reply_to = Some(text()?),
        "expiration" => properties.expiration = Some(text()?),
        "messageId" => properties.message_id = Some(text()?),
        "type" => properties.kind = Some(text()?),
        "appId" => properties.app_id = Some(text()?),
        "timestamp" => properties.timestamp = Some(number()?),
        "priority" => {
            let priority = u8::try_from(number()?);
            properties.priority = Some(
                priority
                    .map_err(|_| usage("AMQP property priority must be 0 to 255".to_owned()))?,
            );
        }
        _ => return Err(usage(format!("there is no AMQP property {name}"))),
    }
    Ok(())
}

fn table(array: &ZendHashTable, depth: usize) -> PhpResult<FieldTable<'_>> {
    let mut fields = Vec::with_capacity(array.len());
    let mut entries = array.iter();
    while let Some((key, value)) = entries.next_zval() {
        let name = name(key)?;
        let field = field(value, &name, depth)?;
        fields.push((name, field));
    }
    Ok(FieldTable(fields))
}

/// Through the raw key: the typed one panics on names that are not UTF-8.
fn name<'a>(key: Zval) -> PhpResult<Cow<'a, str>> {
    if let Some(number) = key.long() {
        return Ok(Cow::Owned(number.to_string()));
    }
    let bytes = key.zend_str().map(ZendStr::as_bytes).unwrap_or_default();
    match std::str::from_utf8(bytes) {
        Ok(name) => Ok(Cow::Owned(name.to_owned())),
        Err(_) => Err(usage(format!(
            "the name of AMQP header or argument \"{}\" must be UTF-8",
            String::from_utf8_lossy(bytes)
        ))),
    }
}

fn field<'a>(value: &'a Zval, name: &str, depth: usize) -> PhpResult<Field<'a>> {
    let value = value.dereference();
    if let Some(string) = value.zend_str() {
        return Ok(Field::String(Cow::Borrowed(string.as_bytes())));
    }
    if let Some(number) = value.long() {
        return Ok(Field::I64(number));
    }
    if let Some(boolean) = value.bool() {
        return Ok(Field::Bool(boolean));
    }
    if let Some(number) = value.double() {
        return Ok(Field::F64(number));
    }
    if value.is_null() {
        return Ok(Field::Void);
    }
    if depth == MAX_DEPTH {
        return Err(usage(format!(
            "AMQP header or argument \"{name}\" is nested deeper than {MAX_DEPTH} arrays"
        )));
    }
    let Some(array) = value.array() else {
        return Err(usage(format!(
            "AMQP header or argument \"{name}\" must be a scalar, null or an array of them"
        )));
    };
    match list(array) {
        Some(list) => {
            let fields = list.map(|value| field(value, name, depth + 1));
            Ok(Field::Array(fields.collect::<PhpResult<_>>()?))
        }
        None => Ok(Field::Table(table(array, depth + 1)?)),
    }
}

pub fn topology(
    exchanges: &ZendHashTable,
    queues: &ZendHashTable,
    bindings: &ZendHashTable,
) -> PhpResult<Topology> {
    Ok(Topology {
        exchanges: each(exchanges, exchange)?,
        queues: each(queues, queue)?,
        bindings: each(bindings, binding)?,
    })
}

fn each<T>(list: &ZendHashTable, make: fn(&Entry<'_>) -> PhpResult<T>) -> PhpResult<Vec<T>> {
    let made = values(list).map(|value| {
        let entry = value
            .array()
            .ok_or_else(|| usage("each part of a topology must be an array".to_owned()))?;
        make(&Entry(entry))
    });
    made.collect()
}

fn exchange(entry: &Entry<'_>) -> PhpResult<Exchange> {
    let mut exchange = Exchange::new(entry.text("name")?, entry.text("kind")?);
    exchange.durable = entry.flag("durable", true);
    exchange.auto_delete = entry.flag("autoDelete", false);
    exchange.internal = entry.flag("internal", false);
    exchange.passive = entry.flag("passive", false);
    exchange.arguments = entry.arguments()?;
    Ok(exchange)
}

fn queue(entry: &Entry<'_>) -> PhpResult<Queue> {
    let mut queue = Queue::new(entry.text("name")?);
    queue.durable = entry.flag("durable", true);
    queue.exclusive = entry.flag("exclusive", false);
    queue.auto_delete = entry.flag("autoDelete", false);
    queue.passive = entry.flag("passive", false);
    queue.arguments = entry.arguments()?;
    Ok(queue)
}

fn binding(entry: &Entry<'_>) -> PhpResult<Binding> {
    let (source, key) = (entry.text("exchange")?, entry.text_or_empty("routingKey")?);
    let mut binding = match entry.0.get("toExchange") {
        Some(_) => Binding::exchange(source, entry.text("toExchange")?, key),
        None => Binding::queue(source, entry.text("queue")?, key),
    };
    binding.arguments = entry.arguments()?;
    Ok(binding)
}

/// Arguments of a queue, an exchange, a binding or a consumer.
pub fn arguments(arguments: &ZendHashTable) -> PhpResult<FieldTable<'static>> {
    Ok(table(arguments, 0)?.into_owned())
}

/// One exchange, queue or binding as PHP describes it.
struct Entry<'a>(&'a ZendHashTable);

impl Entry<'_> {
    fn text(&self, name: &str) -> PhpResult<String> {
        let text = self.optional_text(name)?;
        text.ok_or_else(|| usage(format!("an exchange, queue or binding has no \"{name}\"")))
    }

    fn text_or_empty(&self, name: &str) -> PhpResult<String> {
        Ok(self.optional_text(name)?.unwrap_or_default())
    }

    fn optional_text(&self, name: &str) -> PhpResult<Option<String>> {
        let Some(text) = self.0.get(name).and_then(Text::from_zval) else {
            return Ok(None);
        };
        let text = text.utf8().map_err(|wrong| {
            usage(format!(
                "the {name} \"{}\" of an exchange, queue or binding is {wrong}",
                text.lossy()
            ))
        })?;
        Ok(Some(text.to_owned()))
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        self.0.get(name).and_then(Zval::bool).unwrap_or(default)
    }

    fn arguments(&self) -> PhpResult<FieldTable<'static>> {
        match self.0.get("arguments").and_then(Zval::array) {
            Some(arguments) => self::arguments(arguments),
            None => Ok(FieldTable::new()),
        }
    }
}

// --- AMQP to PHP ----------------------------------------------------------------------------------------------------

pub struct Reading {
    pub headers: Zval,
    pub properties: Zval,
}

pub fn read(properties: &Properties<'_>) -> PhpResult<Reading> {
    let mut present = ZendHashTable::new();
    let texts = [
        ("contentType", &properties.content_type),
        ("contentEncoding", &properties.content_encoding),
        ("correlationId", &properties.correlation_id),
        ("replyTo", &properties.reply_to),
        ("expiration", &properties.expiration),
        ("messageId", &properties.message_id),
        ("type", &properties.kind),
        ("userId", &properties.user_id),
        ("appId", &properties.app_id),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            present.insert(name, binary(text.as_bytes()))?;
        }
    }
    if let Some(priority) = properties.priority {
        present.insert("priority", i64::from(priority))?;
    }
    if let Some(timestamp) = properties.timestamp {
        present.insert("timestamp", timestamp as i64)?;
    }
    present.insert("persistent", properties.delivery_mode == Some(PERSISTENT))?;
    Ok(Reading {
        headers: array_zval(table_array(&properties.headers)?),
        properties: array_zval(present),
    })
}

fn table_array(table: &FieldTable<'_>) -> PhpResult<ZBox<ZendHashTable>> {
    let mut array = ZendHashTable::with_capacity(table.0.len() as u32);
    for (name, value) in &table.0 {
        array.insert(name.as_ref(), field_zval(value)?)?;
    }
    Ok(array)
}

fn field_zval(field: &Field<'_>) -> PhpResult<Zval> {
    let mut zval = Zval::new();
    match field {
        Field::Void => zval.set_null(),
        Field::Bool(boolean) => zval.set_bool(*boolean),
        Field::I8(number) => zval.set_long(i64::from(*number)),
        Field::U8(number) => zval.set_long(i64::from(*number)),
        Field::I16(number) => zval.set_long(i64::from(*number)),
        Field::U16(number) => zval.set_long(i64::from(*number)),
        Field::I32(number) => zval.set_long(i64::from(*number)),
        Field::U32(number) => zval.set_long(i64::from(*number)),
        Field::I64(number) => zval.set_long(*number),
        Field::F32(number) => zval.set_double(f64::from(*number)),
        Field::F64(number) => zval.set_double(*number),
        Field::Decimal { scale, value } => {
            zval.set_double(f64::from(*value) / 10_f64.powi(i32::from(*scale)))
        }
        Field::Timestamp(seconds) => zval.set_long(*seconds as i64),
        Field::String(bytes) | Field::Bytes(bytes) => return Ok(binary(bytes)),
        Field::Table(table) => return Ok(array_zval(table_array(table)?)),
        Field::Array(fields) => {
            let mut list = ZendHashTable::with_capacity(fields.len() as u32);
            for field in fields {
                list.push(field_zval(field)?)?;
            }
            return Ok(array_zval(list));
        }
    }
    Ok(zval)
}

/// A PHP string of any bytes.
pub fn binary(bytes: &[u8]) -> Zval {
    let mut zval = Zval::new();
    zval.set_zend_string(ZendStr::new(bytes, false));
    zval
}
