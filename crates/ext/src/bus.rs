//! Operations of the bus for every message that would be slower in PHP.

use ext_php_rs::prelude::*;

use weft_core::ids;

use crate::process::Process;

#[php_function]
#[php(name = "Weft\\Native\\messageId")]
pub fn message_id() -> PhpResult<String> {
    refuse_after_fork()?;
    Ok(ids::message_id())
}

#[php_function]
#[php(name = "Weft\\Native\\traceparent")]
pub fn traceparent(parent: Option<&str>) -> PhpResult<String> {
    refuse_after_fork()?;
    Ok(ids::traceparent(parent))
}

#[php_function]
#[php(name = "Weft\\Native\\conversationTraceparent")]
pub fn conversation_traceparent(conversation: &str, message: &str) -> PhpResult<String> {
    if let Some(derived) = ids::conversation_traceparent(conversation, message) {
        return Ok(derived);
    }
    traceparent(None)
}

#[php_function]
#[php(name = "Weft\\Native\\shortId")]
pub fn short_id(id: &str) -> String {
    ids::to_base32(id).unwrap_or_else(|| id.to_owned())
}

#[php_function]
#[php(name = "Weft\\Native\\longId")]
pub fn long_id(id: &str) -> String {
    ids::from_base32(id).unwrap_or_else(|| id.to_owned())
}

/// A forked child would draw the random numbers its parent draws.
fn refuse_after_fork() -> PhpResult<()> {
    Process::current()?;
    Ok(())
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    module
        .function(wrap_function!(message_id))
        .function(wrap_function!(traceparent))
        .function(wrap_function!(conversation_traceparent))
        .function(wrap_function!(short_id))
        .function(wrap_function!(long_id))
}
