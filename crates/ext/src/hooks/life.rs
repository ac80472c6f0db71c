//! Beginning and end of the module and of a request.

use std::sync::OnceLock;

use crate::c;

/// Whether PHP has room for what the hooks keep with each fiber.
static HAS_ROOM: OnceLock<bool> = OnceLock::new();

pub fn startup() {
    HAS_ROOM.get_or_init(|| c::weft_hooks_startup() && c::weft_calls_startup());
}

/// In a forked child, whose libraries block from now on.
pub fn forked() {
    c::weft_hooks_forked();
}

pub fn has_room() -> bool {
    HAS_ROOM.get() == Some(&true)
}

pub fn request_startup() {
    c::weft_calls_request_startup();
}

pub fn request_shutdown() {
    // After a fatal error calls still wait, and end here; then nothing suspends any more.
    c::weft_calls_request_shutdown();
    c::weft_hooks_request_shutdown();
}
