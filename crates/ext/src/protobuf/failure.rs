//! Errors of the codec.

use std::fmt::Display;

use ext_php_rs::exception::PhpException;

use weft_core::protobuf::SchemaError;

use crate::failure::{Detail, Failure};

/// A class or descriptor that cannot be used.
pub fn schema(message: impl Into<String>) -> PhpException {
    Failure::new("protobuf.schema", message).into()
}

pub fn unusable(error: &SchemaError) -> PhpException {
    schema(error.to_string())
}

/// Bytes or JSON that are no such message.
pub fn malformed(class: &str, error: &impl Display) -> PhpException {
    undecodable(class, error).into()
}

/// A message whose values take more memory than the limit.
pub fn too_large(class: &str, error: &impl Display) -> PhpException {
    let failure = undecodable(class, error);
    failure.with("isTooLarge", Detail::Int(1)).into()
}

fn undecodable(class: &str, error: &impl Display) -> Failure {
    Failure::new("protobuf.decode", format!("Cannot decode {class}: {error}"))
}
