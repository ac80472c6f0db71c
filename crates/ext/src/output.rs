//! Output buffers that belong to a fiber.
//!
//! PHP has one stack of output buffers for all fibers. A handler that renders a template between `ob_start()` and
//! `ob_get_clean()` and waits meanwhile would find the output of others in its buffer. So while requests are served, what a
//! fiber has opened above a base level leaves the stack with the fiber and comes back with it.
//!
//! The fibers of tasks are resumed by the event loop, and by nothing else. A fiber that code of a task makes itself is resumed by that task:
//! it writes into the buffers of the task, as without Weft.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_int;

use ext_php_rs::prelude::*;

use crate::c;
use crate::failure::Failure;
use crate::zend::{self, Context, Handler, OutputStack};

thread_local! {
    /// Buffers below this level are shared by all fibers; negative while no requests are served.
    static BASE: Cell<c_int> = const { Cell::new(-1) };
    /// Buffers of fibers that are suspended, innermost last, by the address of their context.
    static KEPT: RefCell<HashMap<usize, Vec<Handler>>> = RefCell::default();
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
        return;
    }
    if EVENT_LOOP.get() == 0 {
        EVENT_LOOP.set(from as usize);
    }
    let stack = OutputStack::current();
    if stack.level() <= base && !ARE_KEPT.get() || stack.is_running() {
        return;
    }
    exchange(stack, base, from as usize, to as usize);
}

#[cold]
fn exchange(mut stack: OutputStack, base: c_int, from: usize, to: usize) {
    let event_loop = EVENT_LOOP.get();
    if from != event_loop && to != event_loop {
        return;
    }
    KEPT.with_borrow_mut(|kept| {
        let own = stack.take_above(base);
        if !own.is_empty() {
            kept.insert(from, own);
        }
        stack.put(kept.remove(&to).unwrap_or_default());
        ARE_KEPT.set(!kept.is_empty());
    });
}

/// The buffers of such a fiber are lost, as its response is. PHP frees them at the end of the request.
extern "C" fn destroyed(context: Context) {
    if ARE_KEPT.get() {
        KEPT.with_borrow_mut(|kept| {
            kept.remove(&(context as usize));
            ARE_KEPT.set(!kept.is_empty());
        });
    }
}

#[php_function]
#[php(name = "Weft\\Native\\separateOutput")]
pub fn separate_output(base: i64) -> PhpResult<()> {
    let base = c_int::try_from(base).unwrap_or(-1);
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

/// PHP is about to free every buffer there is.
pub fn reset() {
    BASE.set(-1);
    EVENT_LOOP.set(0);
    c::weft_buffers_share(0);
    KEPT.take();
    ARE_KEPT.set(false);
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    module.function(wrap_function!(separate_output))
}
