//! Output buffers that belong to a fiber.
//!
//! PHP has one stack of output buffers for all fibers. A handler that renders a template between `ob_start()` and
//! `ob_get_clean()` and waits meanwhile would find the output of others in its buffer. So while requests are served, what a
//! fiber has opened above a base level leaves the stack with the fiber and comes back with it.
//!
//! The fibers of tasks are resumed by the event loop, and by nothing else. A fiber that code of a task makes itself is resumed by that task:
//! it writes into the buffers of the task, as without Weft.
//!
//! A fiber may be left while the callback of one of its buffers runs, such as that of a streamed response whose client is slow. PHP notes for the process
//! which callback runs, and forbids all code to use buffers meanwhile: the note leaves with the fiber too. The callback of a buffer that fibers share
//! cannot wait (crates/ext/realms/buffers.c).
//!
//! PHP destroys a suspended fiber from wherever its last reference goes. The fiber unwinds with its own buffers, and with those below them, or stand-ins
//! for them: functions in C that it was left in are in the middle of the stack.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_int;

use ext_php_rs::prelude::*;
use ext_php_rs::types::Zval;

use crate::c;
use crate::failure::Failure;
use crate::process::Process;
use crate::zend::{self, Context, Handlers, OutputStack};

thread_local! {
    /// Buffers below this level are shared by all fibers; negative while no requests are served.
    static BASE: Cell<c_int> = const { Cell::new(-1) };
    /// Buffers of fibers that are suspended, by the address of their context.
    /// Taken out while it changes: memory that PHP refuses meanwhile ends the call by a jump, after which a borrow would last.
    static KEPT: Cell<HashMap<usize, Handlers>> = Cell::default();
    static ARE_KEPT: Cell<bool> = const { Cell::new(false) };
    /// The address of the context that the event loop runs in; zero until its first switch to another.
    static EVENT_LOOP: Cell<usize> = const { Cell::new(0) };
}

/// To be called once, when the module starts.
pub fn observe_fibers() {
    zend::observe_fibers(switched, destroyed);
}

extern "C" fn switched(from: Context, to: Context) {
    let base = BASE.get();
    if base < 0 {
        if ARE_KEPT.get() {
            without_memory_limit(|| unwind(0, from as usize, to as usize));
        }
        return;
    }
    if EVENT_LOOP.get() == 0 {
        EVENT_LOOP.set(from as usize);
    }
    if OutputStack::current().level() <= base && !ARE_KEPT.get() {
        return;
    }
    without_memory_limit(|| exchange(base, from as usize, to as usize));
}

/// PHP's stack of buffers may grow: a switch that fails in its middle would leave the process in no state to end in.
fn without_memory_limit(change: impl FnOnce()) {
    c::weft_memory_limit_lift();
    change();
    c::weft_memory_limit_restore();
}

#[cold]
fn exchange(base: c_int, from: usize, to: usize) {
    let event_loop = EVENT_LOOP.get();
    if from != event_loop && to != event_loop {
        unwind(base, from, to);
        return;
    }
    let mut kept = KEPT.take();
    let own = OutputStack::current().take_above(base);
    if !own.is_empty() {
        kept.insert(from, own);
    }
    if let Some(next) = kept.remove(&to) {
        OutputStack::put(&next);
    }
    keep(kept);
}

/// The fiber of a task that is not resumed by the event loop is destroyed: the buffers of the code that does that, of which there may be none, are kept
/// until it has unwound.
#[cold]
fn unwind(base: c_int, from: usize, to: usize) {
    let mut kept = KEPT.take();
    if let Some(next) = kept.remove(&to) {
        kept.insert(from, OutputStack::current().take_above(base));
        OutputStack::put(&next);
    }
    keep(kept);
}

fn keep(kept: HashMap<usize, Handlers>) {
    ARE_KEPT.set(!kept.is_empty());
    KEPT.set(kept);
}

/// The buffers of such a fiber are lost, as its response is. PHP frees them at the end of the request.
extern "C" fn destroyed(context: Context) {
    if ARE_KEPT.get() {
        let mut kept = KEPT.take();
        kept.remove(&(context as usize));
        keep(kept);
    }
}

#[php_function]
#[php(name = "Weft\\Native\\separateOutput")]
pub fn separate_output(base: i64) -> PhpResult<()> {
    let base = c_int::try_from(base).unwrap_or(-1);
    if base >= 0 {
        Process::refuse_after_request()?;
    }
    if base >= 0 && !OutputStack::current().is_as_declared() {
        let message = "this PHP keeps its output buffers in another way than this build of Weft expects: \
            build it with the headers of the PHP that loads it, 8.2 to 8.6";
        return Err(Failure::new("runtime", message).into());
    }
    BASE.set(base);
    EVENT_LOOP.set(0);
    c::weft_buffers_share(base);
    Ok(())
}

/// In place of `ob_start()`, whose callbacks take other buffers with them when they throw.
#[php_function]
#[php(name = "Weft\\Native\\receiveOutput")]
pub fn receive_output(receive: &Zval) -> PhpResult<bool> {
    if !receive.is_callable() {
        return Err(Failure::new("runtime", "output can be received by a closure only").into());
    }
    Ok(c::receive_output(receive))
}

/// PHP is about to free every buffer there is.
pub fn reset() {
    BASE.set(-1);
    EVENT_LOOP.set(0);
    c::weft_buffers_share(-1);
    KEPT.take();
    ARE_KEPT.set(false);
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    module
        .function(wrap_function!(separate_output))
        .function(wrap_function!(receive_output))
}
