//! What the bus needs for every message and PHP would do slower.

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

/// A forked child would draw the random numbers its parent draws.
fn refuse_after_fork() -> PhpResult<()> {
    Process::current()?;
    Ok(())
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    module
        .function(wrap_function!(message_id))
        .function(wrap_function!(traceparent))
}
