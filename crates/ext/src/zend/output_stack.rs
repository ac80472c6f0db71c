//! The stack of output buffers.

use std::ffi::{c_int, c_void};
use std::ptr;

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

/// A fiber's context, of which only the address counts.
pub type Context = *const c_void;

unsafe extern "C" {
    /// In a build without thread safety, which is the only one Weft is made for.
    static mut output_globals: OutputGlobals;
    safe fn zend_observer_fiber_switch_register(handler: extern "C" fn(from: Context, to: Context));
    safe fn zend_observer_fiber_destroy_register(handler: extern "C" fn(context: Context));
    fn zend_stack_push(stack: *mut Stack, element: *const c_void) -> c_int;
    fn zend_stack_del_top(stack: *mut Stack);
    fn zend_stack_top(stack: *const Stack) -> *mut c_void;
    safe fn php_output_get_level() -> c_int;
    safe fn php_output_get_active_handler() -> *mut c_void;
    safe fn php_output_start_devnull() -> c_int;
}

/// Has PHP call the functions before it switches from a fiber to another, and when it destroys one.
pub fn observe_fibers(
    switches: extern "C" fn(from: Context, to: Context),
    destroyed: extern "C" fn(context: Context),
) {
    zend_observer_fiber_switch_register(switches);
    zend_observer_fiber_destroy_register(destroyed);
}

/// Output buffers that were taken from the stack. PHP frees them at the end of the request, wherever they are.
///
/// PHP may be in the middle of an operation on them: the callback of one runs, and functions in C go through the stack by index below it. So they are
/// put back at the level that they were taken from, with what `php_output_globals` said of them.
pub struct Handlers {
    level: c_int,
    /// The innermost last.
    stack: Vec<*mut c_void>,
    /// The last of them, as a rule. While `ob_flush()` writes to the buffer below, it is the one that is flushed, which is off the stack meanwhile.
    active: *mut c_void,
    /// The one whose callback runs, or null.
    running: *mut c_void,
}

impl Handlers {
    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }
}

/// The stack of output buffers, on the thread of PHP.
pub struct OutputStack(&'static mut OutputGlobals);

impl OutputStack {
    /// The reference must be the only one: it is dropped before the caller returns.
    pub fn current() -> Self {
        // SAFETY: PHP's own thread, between two of its opcodes; nothing in this crate keeps the reference.
        Self(unsafe { &mut *ptr::addr_of_mut!(output_globals) })
    }

    /// How many buffers there are.
    pub fn level(&self) -> c_int {
        self.0.handlers.top
    }

    /// Takes the buffers above a level. What runs in them stops with them: others find no callback in progress.
    pub fn take_above(&mut self, level: c_int) -> Handlers {
        let active = self.0.active;
        let mut stack = Vec::new();
        while self.0.handlers.top > level {
            stack.push(self.top());
            // SAFETY: the stack is not empty.
            unsafe { zend_stack_del_top(&raw mut self.0.handlers) };
        }
        stack.reverse();
        let mut running = ptr::null_mut();
        if stack.contains(&self.0.running) {
            running = self.0.running;
            self.0.running = ptr::null_mut();
        }
        self.0.active = self.top();
        Handlers {
            level,
            stack,
            active,
            running,
        }
    }

    /// Puts buffers on top. Where some that were below are closed, ones that discard their output stand in for them.
    pub fn put(handlers: &Handlers) {
        if handlers.is_empty() {
            return;
        }
        while Self::current().level() < handlers.level && php_output_start_devnull() == 0 {}
        let globals = Self::current().0;
        for handler in &handlers.stack {
            let element = ptr::from_ref(handler).cast();
            // SAFETY: PHP copies the element, a pointer, whose size it was told when the stack was made.
            unsafe { zend_stack_push(&raw mut globals.handlers, element) };
        }
        globals.active = handlers.active;
        globals.running = handlers.running;
    }

    fn top(&self) -> *mut c_void {
        // SAFETY: PHP answers with the address of the last element, which is a pointer, or with null.
        unsafe {
            let element: *mut *mut c_void = zend_stack_top(&raw const self.0.handlers).cast();
            if element.is_null() {
                ptr::null_mut()
            } else {
                *element
            }
        }
    }

    /// Whether what is declared here is what this PHP has, by what its own functions say. The order of these fields has
    /// changed before (`flags` stood first once), and a wrong one would be written to.
    ///
    /// Should the struct be another one, plain numbers are read from it, which is as long; only what passes as a stack of
    /// pointers is followed.
    pub fn is_as_declared(&self) -> bool {
        self.0.handlers.size as usize == size_of::<*mut c_void>()
            && self.0.handlers.top == php_output_get_level()
            && self.0.handlers.max >= self.0.handlers.top
            && self.0.active == php_output_get_active_handler()
            && self.0.running.is_null()
            && self.top() == self.0.active
    }
}
