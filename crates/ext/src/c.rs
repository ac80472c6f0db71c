//! The functions in C that this crate calls: `calls`, `fibers`, `hooks` and `realms` in `crates/ext`.
//!
//! All of them are for the thread of PHP, on which everything in this crate runs that PHP calls.

#![allow(unsafe_code, reason = "declares functions in C")]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};

use ext_php_rs::types::Zval;

unsafe extern "C" {
    pub safe fn weft_hooks_startup() -> bool;
    pub safe fn weft_hooks_forked();
    pub safe fn weft_hooks_request_shutdown();
    pub safe fn weft_hooks_switch(groups: u32);
    pub safe fn weft_hooks_groups() -> u32;
    pub safe fn weft_hooks_enter_fiber();
    pub safe fn weft_calls_startup() -> bool;
    pub safe fn weft_calls_request_startup();
    pub safe fn weft_calls_request_shutdown();
    pub safe fn weft_calls_queue(queue: bool) -> bool;
    #[cfg(debug_assertions)]
    pub safe fn weft_nap(microseconds: u32) -> i32;
    pub safe fn weft_realms_startup() -> bool;
    pub safe fn weft_realms_request_startup();
    pub safe fn weft_realms_request_shutdown();
    pub safe fn weft_session_close();
    pub safe fn weft_buffers_share(level: c_int);
    pub safe fn weft_buffers_may_wait() -> bool;
    pub safe fn weft_may_suspend() -> bool;
    pub safe fn weft_collector_runs() -> bool;
    pub safe fn weft_memory_limit_lift();
    pub safe fn weft_memory_limit_restore();

    fn weft_receive_output(closure: *const Zval) -> bool;
    fn weft_release(work: *mut RawWork);
    fn weft_each_extension(
        visit: extern "C" fn(
            name: *const c_char,
            handle: *mut c_void,
            may_suspend: bool,
            context: *mut c_void,
        ),
        context: *mut c_void,
    );
    static weft_replacements: [Replacement; 0];
    static weft_replacement_count: usize;
}

/// Opens an output buffer that calls a closure for each piece of output.
pub fn receive_output(closure: &Zval) -> bool {
    // SAFETY: it copies the value.
    unsafe { weft_receive_output(closure) }
}

/// `weft_work` of hooks.h; only its address is used here.
#[repr(C)]
pub struct RawWork {
    run: unsafe extern "C" fn(*mut RawWork),
    _release: unsafe extern "C" fn(*mut RawWork),
    _holders: c_int,
}

/// A call that runs on another thread. Dropping it gives its reference back, on whichever thread.
pub struct Work(*mut RawWork);

// SAFETY: C hands the work over to another thread; both sides count their references atomically.
unsafe impl Send for Work {}

impl Work {
    /// # Safety
    /// The work is valid, and has a reference for this.
    pub unsafe fn new(work: *mut RawWork) -> Self {
        Self(work)
    }

    pub fn run(self) {
        // SAFETY: the reference keeps the work alive, and it may be run on another thread, once.
        unsafe { ((*self.0).run)(self.0) }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // SAFETY: this reference is given back once.
        unsafe { weft_release(self.0) }
    }
}

/// The handle that `dlopen()` has returned for a library that stays loaded.
#[derive(Clone, Copy)]
pub struct LibraryHandle(pub *mut c_void);

/// A loaded extension of PHP that is a library.
pub struct Extension {
    pub name: String,
    pub handle: LibraryHandle,
    /// Whether its functions may suspend a task.
    pub may_suspend: bool,
}

pub fn extensions() -> Vec<Extension> {
    extern "C" fn visit(
        name: *const c_char,
        handle: *mut c_void,
        may_suspend: bool,
        context: *mut c_void,
    ) {
        // SAFETY: the name of an extension is a string.
        let name = unsafe { CStr::from_ptr(name) };
        // SAFETY: `context` is the list of the caller below.
        let extensions = unsafe { &mut *context.cast::<Vec<Extension>>() };
        extensions.push(Extension {
            name: name.to_string_lossy().into_owned(),
            handle: LibraryHandle(handle),
            may_suspend,
        });
    }
    let mut extensions: Vec<Extension> = Vec::new();
    // SAFETY: PHP's own thread; the callback only pushes.
    unsafe { weft_each_extension(visit, (&raw mut extensions).cast()) };
    extensions
}

/// `weft_replacement` of hooks.h.
#[repr(C)]
struct Replacement {
    name: *const c_char,
    replacement: *mut c_void,
}

/// The functions of libc that are replaced, and the address of each replacement.
pub fn replacements() -> HashMap<&'static [u8], (&'static str, usize)> {
    // SAFETY: the table is constant data of this library.
    let entries = unsafe {
        std::slice::from_raw_parts(
            (&raw const weft_replacements).cast::<Replacement>(),
            weft_replacement_count,
        )
    };
    let entries = entries.iter().map(|entry| {
        // SAFETY: names are string literals.
        let name: &'static CStr = unsafe { CStr::from_ptr(entry.name) };
        let text = name.to_str().unwrap_or_default();
        (name.to_bytes(), (text, entry.replacement as usize))
    });
    entries.collect()
}
