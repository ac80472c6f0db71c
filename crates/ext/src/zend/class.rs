//! Classes: what ext-php-rs does not tell of them.

use std::mem::offset_of;
use std::ptr::NonNull;

use ext_php_rs::class::RegisteredClass;
use ext_php_rs::convert::IntoZval;
use ext_php_rs::exception::PhpResult;
use ext_php_rs::ffi::{
    self, zend_class_entry, zend_hash_str_find_ptr_lc, zend_lookup_class_ex, zend_object,
    zend_property_info,
};
use ext_php_rs::types::{ZendClassObject, ZendStr, Zval};
use ext_php_rs::zend::{ClassEntry, Function};

use super::slot;

/// A class, which PHP keeps until the request ends. Nothing may keep this longer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Class(NonNull<zend_class_entry>);

/// Why a property has no slot.
pub enum NoSlot {
    Unknown,
    /// It is static or virtual.
    NotInObject,
}

impl Class {
    /// # Safety
    /// PHP knows the class.
    pub(super) unsafe fn at(class: *mut zend_class_entry) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { NonNull::new_unchecked(class) })
    }

    /// Loads the class if needed.
    pub fn find(name: &ZendStr) -> Option<Self> {
        let name = std::ptr::from_ref(name).cast_mut();
        // SAFETY: the name is alive, and PHP does not change it.
        let class = unsafe { zend_lookup_class_ex(name, std::ptr::null_mut(), 0) };
        NonNull::new(class).map(Self)
    }

    pub fn of_entry(entry: &'static ClassEntry) -> Self {
        Self(NonNull::from(entry))
    }

    pub fn entry(self) -> &'static ClassEntry {
        // SAFETY: the class lives until the request ends.
        unsafe { self.0.as_ref() }
    }

    pub fn name(self) -> &'static str {
        self.entry().name().unwrap_or_default()
    }

    pub fn as_ptr(self) -> *mut zend_class_entry {
        self.0.as_ptr()
    }

    /// How many property slots an object of it has.
    #[inline]
    pub fn slot_count(self) -> u32 {
        // SAFETY: the class lives until the request ends.
        unsafe { (*self.0.as_ptr()).default_properties_count as u32 }
    }

    /// The class's own function, and not a copy of it, which [`Function::try_from_method`] gives: PHP keeps with a function what its calls need,
    /// would do so for each copy, and reads the function of a call once more when the call has ended by a fatal error.
    ///
    /// `name` is in lower case.
    pub fn method(self, name: &str) -> Option<&'static Function> {
        let functions = &self.entry().function_table;
        // SAFETY: the class and its functions live until the request ends, and the table holds pointers to functions only.
        unsafe {
            let found = zend_hash_str_find_ptr_lc(functions, name.as_ptr().cast(), name.len());
            found.cast::<Function>().as_ref()
        }
    }

    /// Whether a class of an extension makes its objects. The class must be one that can be instantiated.
    pub fn has_creation_handler(self) -> bool {
        // SAFETY: in such a class this member of the union is the one in use.
        unsafe { self.entry().__bindgen_anon_2.create_object }.is_some()
    }

    /// The index of a declared property's slot.
    pub fn slot(self, property: &str) -> Result<u32, NoSlot> {
        // SAFETY: the class lives; an entry of `properties_info` points at a `zend_property_info`.
        let info = unsafe {
            let found = ffi::zend_hash_str_find(
                &raw const (*self.0.as_ptr()).properties_info,
                property.as_ptr().cast(),
                property.len(),
            );
            let found = found.as_ref().ok_or(NoSlot::Unknown)?;
            &*found.value.ptr.cast::<zend_property_info>()
        };
        let table = offset_of!(zend_object, properties_table) as u32;
        let slot = info.offset.wrapping_sub(table) / size_of::<Zval>() as u32;
        if slot < self.slot_count() {
            Ok(slot)
        } else {
            Err(NoSlot::NotInObject)
        }
    }

    /// A new object with these values in its slots and one reference; no constructor runs. The class must have no creation
    /// handler.
    ///
    /// # Panics
    /// If there are fewer values than slots.
    pub fn new_object(self, values: &[Zval]) -> *mut zend_object {
        assert!(values.len() >= self.slot_count() as usize);
        // SAFETY: without a creation handler this is what PHP does; each slot is then initialised.
        unsafe {
            let object = ffi::zend_objects_new(self.0.as_ptr());
            for (index, value) in (0..self.slot_count()).zip(values) {
                std::ptr::write(slot::at(object, index), value.shallow_clone());
            }
            object
        }
    }
}

/// A native object as an instance of `class`, which extends the object's own.
pub fn instance<T: RegisteredClass>(value: T, class: &'static ClassEntry) -> PhpResult<Zval> {
    // SAFETY: the object is initialised in the next line, before other code can see it.
    let mut object = unsafe { ZendClassObject::<T>::new_uninit(Some(class)) };
    object.initialize(value);
    Ok(object.into_zval(false)?)
}
