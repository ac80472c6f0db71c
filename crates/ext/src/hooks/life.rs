//! Beginning and end of the module and of a request.

use std::sync::OnceLock;

unsafe extern "C" {
    fn weft_hooks_startup() -> bool;
    fn weft_hooks_request_shutdown();
    fn weft_calls_startup() -> bool;
    fn weft_calls_request_shutdown();
}

/// Whether PHP has room for what the hooks keep with each fiber.
static HAS_ROOM: OnceLock<bool> = OnceLock::new();

pub fn startup() {
    // SAFETY: PHP starts this module, on its own thread.
    HAS_ROOM.get_or_init(|| unsafe { weft_hooks_startup() && weft_calls_startup() });
}

pub fn has_room() -> bool {
    HAS_ROOM.get() == Some(&true)
}

pub fn request_shutdown() {
    // SAFETY: PHP's own thread. After a fatal error calls still wait, and end here; then nothing suspends any more.
    unsafe {
        weft_calls_request_shutdown();
        weft_hooks_request_shutdown();
    }
}
