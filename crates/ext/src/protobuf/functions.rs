//! The native functions of `Weft\Protobuf\Codec` and `Json`.

use std::rc::Rc;

use ext_php_rs::exception::PhpResult;
use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendObject, ZendStr, Zval};

use weft_core::protobuf::{self, Budget, Limits};

use super::binding::Binding;
use super::failure::{malformed, schema};
use super::object::NewObject;
use super::{encode, registry, schema_files, sink};
use crate::failure::Failure;
use crate::zend::value::Object;

#[php_function]
#[php(name = "Weft\\Native\\protobufEncode")]
pub fn protobuf_encode(message: &mut ZendObject) -> PhpResult<Zval> {
    encode::encode(message, string)
}

#[php_function]
#[php(name = "Weft\\Native\\protobufDecode")]
pub fn protobuf_decode(class: &Zval, bytes: &Zval, memory: Option<i64>) -> PhpResult<Zval> {
    let (Some(class), Some(bytes)) = (class.zend_str(), bytes.zend_str()) else {
        return Err(schema("protobufDecode() takes a class name and a string"));
    };
    decode(class, bytes.as_bytes(), budget(memory))
}

/// A new message of that class with what the bytes hold.
pub fn decode(class: &ZendStr, bytes: &[u8], memory: Budget) -> PhpResult<Zval> {
    let binding = registry::of_name(class)?;
    new_object(&binding, bytes, memory)
}

fn budget(bytes: Option<i64>) -> Budget {
    bytes.map_or(Budget::UNLIMITED, |bytes| {
        Budget::new(usize::try_from(bytes).unwrap_or(0))
    })
}

fn new_object(binding: &Rc<Binding>, bytes: &[u8], memory: Budget) -> PhpResult<Zval> {
    let limits = Limits {
        memory,
        ..Limits::default()
    };
    let schema = schema_files::schema();
    let mut sink = sink::ObjectSink::default();
    let object = NewObject::of(binding);
    let outcome = protobuf::decode(
        &schema,
        binding.layout,
        bytes,
        object.root(),
        &mut sink,
        limits,
    );
    drop(sink);
    outcome.map_err(|error| sink::refused(binding, error))?;
    Ok(object.into_zval())
}

#[php_function]
#[php(name = "Weft\\Native\\protobufToJson")]
pub fn protobuf_to_json(message: &mut ZendObject) -> PhpResult<Zval> {
    let binding = registry::of_class(Object::of(message).class())?;
    let schema = schema_files::schema();
    let json = encode::encode(message, |bytes| {
        protobuf::json::to_json(&schema, binding.layout, bytes)
    })?;
    match json {
        Ok(json) => Ok(string(json.as_bytes())),
        Err(error) => {
            let text = format!("Cannot write {} as JSON: {error}", binding.class_name);
            Err(Failure::new("protobuf.encode", text).into())
        }
    }
}

#[php_function]
#[php(name = "Weft\\Native\\protobufFromJson")]
pub fn protobuf_from_json(
    class: &Zval,
    json: &Zval,
    lenient: bool,
    memory: Option<i64>,
) -> PhpResult<Zval> {
    let (Some(class), Some(json)) = (class.zend_str(), json.zend_str()) else {
        return Err(schema("protobufFromJson() takes a class name and a string"));
    };
    let binding = registry::of_name(class)?;
    let schema = schema_files::schema();
    let bytes = protobuf::json::from_json(&schema, binding.layout, json.as_bytes(), lenient)
        .map_err(|error| malformed(&binding.class_name, &error))?;
    new_object(&binding, &bytes, budget(memory))
}

fn string(bytes: &[u8]) -> Zval {
    let mut zval = Zval::new();
    zval.set_zend_string(ZendStr::new(bytes, false));
    zval
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    module
        .function(wrap_function!(protobuf_encode))
        .function(wrap_function!(protobuf_decode))
        .function(wrap_function!(protobuf_to_json))
        .function(wrap_function!(protobuf_from_json))
}
