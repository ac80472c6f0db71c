//! Operations of the bus for every message that would be slower in PHP.

use ext_php_rs::binary::Binary;
use ext_php_rs::prelude::*;

use weft_core::ids;

use crate::process::Process;
use crate::text::Text;

#[php_function]
#[php(name = "Weft\\Native\\messageId")]
pub fn message_id() -> PhpResult<String> {
    refuse_after_fork()?;
    Ok(ids::message_id())
}

// A client or a foreign publisher may send any bytes. A parent that is not UTF-8 means a new trace (W3C Trace Context §4.3); an id that is not
// UTF-8 is not a UUID, and stays as it is.

#[php_function]
#[php(name = "Weft\\Native\\traceparent")]
pub fn traceparent(parent: Option<Text>) -> PhpResult<String> {
    refuse_after_fork()?;
    Ok(ids::traceparent(
        parent.and_then(|parent| parent.utf8().ok()),
    ))
}

#[php_function]
#[php(name = "Weft\\Native\\conversationTraceparent")]
pub fn conversation_traceparent(conversation: Text, message: Text) -> PhpResult<String> {
    if let (Ok(conversation), Ok(message)) = (conversation.utf8(), message.utf8())
        && let Some(derived) = ids::conversation_traceparent(conversation, message)
    {
        return Ok(derived);
    }
    traceparent(None)
}

#[php_function]
#[php(name = "Weft\\Native\\shortId")]
pub fn short_id(id: Text) -> Binary<u8> {
    converted(id, ids::to_base32)
}

#[php_function]
#[php(name = "Weft\\Native\\longId")]
pub fn long_id(id: Text) -> Binary<u8> {
    converted(id, ids::from_base32)
}

fn converted(id: Text, convert: fn(&str) -> Option<String>) -> Binary<u8> {
    let converted = id.utf8().ok().and_then(convert);
    Binary::from(converted.map_or_else(|| id.bytes().to_vec(), String::into_bytes))
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
