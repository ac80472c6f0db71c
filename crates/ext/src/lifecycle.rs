//! What happens when PHP loads the extension, begins and ends a request, and forks.

use weft_core::workers::SupervisorClient;

use crate::{c, hooks, os, output, process, protobuf, realms, stack};

pub extern "C" fn startup(_type: i32, _module: i32) -> i32 {
    std::panic::set_hook(Box::new(report_panic));
    os::after_fork_in_child(after_fork_in_child);
    SupervisorClient::connect(stack::reader());
    output::observe_fibers();
    hooks::startup();
    realms::startup();
    0
}

/// A panic is a bug in Weft; PHP gets it as an `\Error`, and the log says where it was.
fn report_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic
        .location()
        .map(ToString::to_string)
        .unwrap_or_default();
    eprintln!("weft: internal error at {place}; it is reported to PHP as an Error");
}

extern "C" fn after_fork_in_child() {
    process::forked();
    hooks::forked();
}

pub extern "C" fn request_startup(_type: i32, _module: i32) -> i32 {
    process::begin_request();
    hooks::request_startup();
    realms::request_startup();
    0
}

pub extern "C" fn request_shutdown(_type: i32, _module: i32) -> i32 {
    c::weft_session_close();
    process::end_request();
    hooks::request_shutdown();
    realms::request_shutdown();
    protobuf::forget();
    output::reset();
    process::end();
    0
}
