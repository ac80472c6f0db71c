//! `Weft\\Native\\Realm`: state of PHP once per application instance. `crates/ext/realms/realm.h` explains it; it is C because it moves
//! globals of the engine, whose layout only PHP's headers know.

unsafe extern "C" {
    fn weft_realms_startup() -> bool;
    fn weft_realms_request_shutdown();
}

/// Registers the class. It is missing where PHP has no room left for what is kept with each fiber.
pub fn startup() {
    // SAFETY: PHP starts this module, on its own thread.
    unsafe { weft_realms_startup() };
}

pub fn request_shutdown() {
    // SAFETY: PHP's own thread; no fiber runs any more.
    unsafe { weft_realms_request_shutdown() };
}
