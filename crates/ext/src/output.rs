//! Output buffers that belong to a fiber.
//!
//! PHP has one stack of output buffers for all fibers. A handler that renders a template between `ob_start()` and
//! `ob_get_clean()` and waits meanwhile would find the output of others in its buffer. So while requests are served, what a
//! fiber has opened above a base level leaves the stack with the fiber and comes back with it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr;

use ext_php_rs::prelude::*;

use crate::failure::Failure;

/// PHP's `zend_stack` (Zend/zend_stack.h).
#[repr(C)]
struct Stack {
    size: c_int,
    top: c_int,
    max: c_int,
    elements: *mut c_void,
}

/// The beginning of PHP's `zend_output_globals` (main/php_output.h).
#[repr(C)]
struct OutputGlobals {
    /// A stack of pointers to handlers, the innermost last.
    handlers: Stack,
    /// The last of them, or null.
    active: *mut c_void,
    /// The one whose callback is running, or null.
    running: *mut c_void,
}

unsafe extern "C" {
    /// In a build without thread safety, which is the only one Weft is made for.
    static mut output_globals: OutputGlobals;
    fn zend_observer_fiber_switch_register(
        handler: extern "C" fn(from: *mut c_void, to: *mut c_void),
    );
    fn zend_observer_fiber_destroy_register(handler: extern "C" fn(context: *mut c_void));
    fn zend_stack_push(stack: *mut Stack, element: *const c_void) -> c_int;
    fn zend_stack_del_top(stack: *mut Stack);
    fn zend_stack_top(stack: *const Stack) -> *mut c_void;
    fn php_output_get_level() -> c_int;
    fn php_output_get_active_handler() -> *mut c_void;
}

thread_local! {
    /// Buffers below this level are shared by all fibers; negative while no requests are served.
    static BASE: Cell<c_int> = const { Cell::new(-1) };
    /// Buffers of fibers that are suspended, innermost last, by the address of their context.
    static KEPT: RefCell<HashMap<usize, Vec<*mut c_void>>> = RefCell::default();
    static ARE_KEPT: Cell<bool> = const { Cell::new(false) };
}

/// To be called once, when the module starts.
pub fn observe_fibers() {
    // SAFETY: PHP calls the handlers on its own thread, and the library is never unmapped.
    unsafe {
        zend_observer_fiber_switch_register(switched);
        zend_observer_fiber_destroy_register(destroyed);
    }
}

extern "C" fn switched(from: *mut c_void, to: *mut c_void) {
    let base = BASE.get();
    if base < 0 {
        return;
    }
    // SAFETY: PHP's own thread, between two of its opcodes; there is no other reference.
    let globals = unsafe { &mut *ptr::addr_of_mut!(output_globals) };
    if globals.handlers.top <= base && !ARE_KEPT.get() || !globals.running.is_null() {
        return;
    }
    exchange(globals, base, from as usize, to as usize);
}

#[cold]
fn exchange(globals: &mut OutputGlobals, base: c_int, from: usize, to: usize) {
    KEPT.with_borrow_mut(|kept| {
        let own = take_above(globals, base);
        if !own.is_empty() {
            kept.insert(from, own);
        }
        for handler in kept.remove(&to).unwrap_or_default() {
            push(globals, handler);
        }
        ARE_KEPT.set(!kept.is_empty());
    });
    globals.active = top(globals);
}

fn take_above(globals: &mut OutputGlobals, base: c_int) -> Vec<*mut c_void> {
    let mut own = Vec::new();
    while globals.handlers.top > base {
        own.push(top(globals));
        // SAFETY: the stack is not empty.
        unsafe { zend_stack_del_top(&raw mut globals.handlers) };
    }
    own.reverse();
    own
}

fn push(globals: &mut OutputGlobals, handler: *mut c_void) {
    let element = ptr::addr_of!(handler).cast();
    // SAFETY: PHP copies the element, a pointer, whose size it was told when the stack was made.
    unsafe { zend_stack_push(&raw mut globals.handlers, element) };
}

fn top(globals: &OutputGlobals) -> *mut c_void {
    // SAFETY: PHP answers with the address of the last element, which is a pointer, or with null.
    unsafe {
        let element: *mut *mut c_void = zend_stack_top(&raw const globals.handlers).cast();
        if element.is_null() {
            ptr::null_mut()
        } else {
            *element
        }
    }
}

/// The buffers of such a fiber are lost, as its response is. PHP frees them at the end of the request.
extern "C" fn destroyed(context: *mut c_void) {
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
    if base >= 0 && !is_as_declared() {
        let message = "this PHP keeps its output buffers in another way than this build of Weft expects: \
            build it with the headers of the PHP that loads it, 8.2 to 8.5";
        return Err(Failure::new("runtime", message).into());
    }
    BASE.set(base);
    Ok(())
}

/// Whether what is declared above is what this PHP has, by what its own functions say. The order of these fields has
/// changed before (`flags` stood first once), and a wrong one would be written to.
fn is_as_declared() -> bool {
    // SAFETY: PHP's own thread, outside any output callback. Should the struct be another one, plain numbers are read from
    // it, which is as long; only what passes as a stack of pointers is followed.
    unsafe {
        let globals = &*ptr::addr_of!(output_globals);
        globals.handlers.size as usize == size_of::<*mut c_void>()
            && globals.handlers.top == php_output_get_level()
            && globals.handlers.max >= globals.handlers.top
            && globals.active == php_output_get_active_handler()
            && globals.running.is_null()
            && top(globals) == globals.active
    }
}

/// PHP is about to free every buffer there is.
pub fn reset() {
    BASE.set(-1);
    KEPT.take();
    ARE_KEPT.set(false);
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    module.function(wrap_function!(separate_output))
}
