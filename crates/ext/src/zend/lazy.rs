//! Lazy objects of PHP 8.4, whose properties an initializer sets when they are first read.

#[cfg(php84)]
use std::ptr::NonNull;

use ext_php_rs::exception::PhpResult;
#[cfg(php84)]
use ext_php_rs::ffi::zend_object;

use super::held::Held;
use super::value::Object;

/// Flags of a lazy object: Zend/zend_types.h.
#[cfg(php84)]
const LAZY_UNINITIALIZED: u32 = 1 << 31;
#[cfg(php84)]
const LAZY_PROXY: u32 = 1 << 30;

#[cfg(php84)]
unsafe extern "C" {
    /// Zend/zend_lazy_objects.h
    fn zend_lazy_object_init(object: *mut zend_object) -> *mut zend_object;
}

impl Object<'_> {
    /// Runs the initializer of a lazy object: without it, its slots are empty. Those of a lazy proxy stay so, and the object that it stands
    /// for is returned. If the initializer throws, that is the error.
    #[cfg(php84)]
    #[inline]
    pub fn initialize(self) -> PhpResult<Option<Held>> {
        // SAFETY: the object lives.
        let flags = unsafe { (*self.object.as_ptr()).extra_flags };
        if flags & (LAZY_UNINITIALIZED | LAZY_PROXY) == 0 {
            return Ok(None);
        }
        self.initialize_lazy()
    }

    #[cfg(not(php84))]
    #[inline]
    pub fn initialize(self) -> PhpResult<Option<Held>> {
        Ok(None)
    }

    #[cfg(php84)]
    #[cold]
    fn initialize_lazy(self) -> PhpResult<Option<Held>> {
        // The initializer is PHP code, which may let go of the object.
        let _held = self.held();
        // SAFETY: the object is a lazy one, and held; so is the one that it stands for.
        let instance = unsafe { zend_lazy_object_init(self.object.as_ptr()) };
        match NonNull::new(instance) {
            Some(instance) if instance == self.object => Ok(None),
            // SAFETY: the proxy keeps the object.
            Some(instance) => Ok(Some(unsafe { Object::at(instance.as_ptr()) }.held())),
            // Its exception is pending, and is passed on.
            None => Err("the initializer of a lazy object has failed".into()),
        }
    }
}
