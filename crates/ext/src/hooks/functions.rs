//! `Weft\Native\switchHooks` and the functions that describe the hooks.

use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, Zval};

use super::{libraries, life, slots};
use crate::c;
use crate::process::Process;

/// Which groups of calls suspend tasks from now on, as `weft_group` of hooks.h. Returns those that did before.
///
/// It has no effect where PHP has no room left for what is kept with each fiber.
#[php_function]
#[php(name = "Weft\\Native\\switchHooks")]
pub fn switch_hooks(groups: i64) -> PhpResult<i64> {
    let before = c::weft_hooks_groups();
    let groups = groups as u32;
    if groups == before {
        return Ok(before.into());
    }
    Process::refuse_after_request()?;
    let is_usable = groups != 0 && life::has_room() && Process::current()?.fd_waits().is_some();
    if is_usable {
        libraries::scan();
    }
    c::weft_hooks_switch(if is_usable { groups } else { 0 });
    Ok(before.into())
}

/// From now on libraries suspend the running fiber.
#[php_function]
#[php(name = "Weft\\Native\\hookFiber")]
pub fn hook_fiber() {
    c::weft_hooks_enter_fiber();
}

/// Whether a task that uses a handle in which another task waits gets its turn later instead of an error. Returns whether
/// it did before.
#[php_function]
#[php(name = "Weft\\Native\\queueForHandles")]
pub fn queue_for_handles(queue: bool) -> bool {
    c::weft_calls_queue(queue)
}

/// The replaced functions of each library.
#[php_function]
#[php(name = "Weft\\Native\\hookedFunctions")]
pub fn hooked_functions() -> PhpResult<Zval> {
    let mut report = ZendHashTable::new();
    for object in slots::changed() {
        report.insert(object.name.as_str(), object.functions)?;
    }
    let mut zval = Zval::new();
    zval.set_hashtable(report);
    Ok(zval)
}

/// The names of the loaded extensions whose functions block the process: nothing would keep two tasks apart in them.
#[php_function]
#[php(name = "Weft\\Native\\blockingExtensions")]
pub fn blocking_extensions() -> Vec<String> {
    let extensions = c::extensions().into_iter();
    let blocking = extensions.filter(|extension| !extension.may_suspend);
    blocking.map(|extension| extension.name).collect()
}

/// Waits of libraries that have not ended, and the system calls that all waits so far have made to register their descriptors.
#[php_function]
#[php(name = "Weft\\Native\\hookCounters")]
pub fn hook_counters() -> PhpResult<Zval> {
    let waits = Process::current()?.fd_waits();
    let (pending, calls) = waits.map_or((0, 0), |waits| (waits.pending(), waits.epoll_ctl_calls()));
    let mut counters = ZendHashTable::new();
    counters.insert("pending", pending as i64)?;
    counters.insert("epoll_ctl", calls as i64)?;
    let mut zval = Zval::new();
    zval.set_hashtable(counters);
    Ok(zval)
}

/// Lets a test wait for a call on a helper thread, as name look-ups do. Returns `weft_end` of hooks.h.
#[cfg(debug_assertions)]
#[php_function]
#[php(name = "Weft\\Native\\nap")]
pub fn nap(microseconds: i64) -> i64 {
    c::weft_nap(microseconds as u32).into()
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    #[cfg(debug_assertions)]
    let module = module.function(wrap_function!(nap));
    module
        .function(wrap_function!(switch_hooks))
        .function(wrap_function!(hook_fiber))
        .function(wrap_function!(queue_for_handles))
        .function(wrap_function!(hooked_functions))
        .function(wrap_function!(blocking_extensions))
        .function(wrap_function!(hook_counters))
}
