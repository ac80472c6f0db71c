//! Values that are read while PHP code may run.
//!
//! PHP code runs inside a native call wherever a value is converted (`jsonSerialize`, `__toString`), a class is looked up
//! (autoloaders), a failure becomes an exception, an error handler is called or a value is released (destructors). Such code
//! can change an array or release an object that the call has reached through a PHP reference, as in `[&$inner]`.
//!
//! One reference of our own is all that is needed: PHP copies an array that more than one owner refers to before it writes
//! to it, and frees an object after its last reference is gone.

use ext_php_rs::types::{ZendHashTable, Zval};

use super::make;
use super::value::{Array, Object};

/// A value with a reference of its own, PHP references followed. Dropping it may run a destructor.
pub struct Held(pub(super) Zval);

impl Held {
    pub fn of(value: &Zval) -> Self {
        Self(value.dereference().shallow_clone())
    }

    pub fn zval(&self) -> &Zval {
        &self.0
    }

    pub fn object(&self) -> Option<Object<'_>> {
        self.0.object().map(Object::of)
    }

    /// The value as an array. PHP does not write to it while it is held.
    pub fn array(&self) -> Option<&ZendHashTable> {
        self.0.array()
    }
}

impl Object<'_> {
    pub fn held(self) -> Held {
        Held(self.to_zval())
    }
}

impl Array<'_> {
    pub fn held(self) -> Held {
        Held(make::shared_array(self.array))
    }
}
