//! Protocol Buffers between property slots of PHP objects and bytes, without a tree in between.
//!
//! The first use of a class binds it: its file's descriptor is added to the schema, its properties are checked against
//! what the layout will write, and their offsets are kept until the request ends.

mod binding;
mod dynamic;
mod encode;
mod registry;
mod sink;
mod slot;

use ext_php_rs::exception::{PhpException, PhpResult};
use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendObject, ZendStr, Zval};

use weft_core::protobuf::{self, DecodeError, SchemaError};

use crate::failure::Failure;

pub use registry::forget;

#[php_function]
#[php(name = "Weft\\Native\\protobufEncode")]
pub fn protobuf_encode(message: &mut ZendObject) -> PhpResult<Zval> {
    encode::encode(message, string)
}

#[php_function]
#[php(name = "Weft\\Native\\protobufDecode")]
pub fn protobuf_decode(class: &Zval, bytes: &Zval) -> PhpResult<Zval> {
    let (Some(class), Some(bytes)) = (class.zend_str(), bytes.zend_str()) else {
        return Err(schema("protobufDecode() takes a class name and a string"));
    };
    let binding = registry::of_name(class)?;
    let schema = registry::schema();
    let mut sink = sink::ObjectSink::default();
    let object = sink::NewObject::of(&binding);
    let root = object.root(&binding);
    let outcome = protobuf::decode(&schema, binding.layout, bytes.as_bytes(), root, &mut sink);
    drop(sink);
    outcome.map_err(|error| sink::refused(&binding, error))?;
    Ok(object.into_zval())
}

fn string(bytes: &[u8]) -> Zval {
    let mut zval = Zval::new();
    zval.set_zend_string(ZendStr::new(bytes, false));
    zval
}

fn schema(message: impl Into<String>) -> PhpException {
    Failure::new("protobuf.schema", message).into()
}

fn unusable(error: &SchemaError) -> PhpException {
    schema(error.to_string())
}

fn malformed(class: &str, error: &DecodeError) -> PhpException {
    Failure::new("protobuf.decode", format!("Cannot decode {class}: {error}")).into()
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    module
        .function(wrap_function!(protobuf_encode))
        .function(wrap_function!(protobuf_decode))
}
