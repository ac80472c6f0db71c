//! `Weft\\Native\\Realm`: state of PHP once per application instance. `crates/ext/realms/realm.h` explains it; it is C because it moves
//! globals of the engine, whose layout only PHP's headers know.

use crate::c;

/// Registers the class. It is missing where PHP has no room left for what is kept with each fiber.
pub fn startup() {
    c::weft_realms_startup();
}

pub fn request_startup() {
    c::weft_realms_request_startup();
}

/// To be called when no fiber runs any more.
pub fn request_shutdown() {
    c::weft_realms_request_shutdown();
}
