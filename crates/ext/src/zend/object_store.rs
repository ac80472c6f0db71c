//! The store of all objects, in a forked child.
//!
//! A child inherits a copy of every object, but not the threads, and it shares sockets, epoll instances and eventfds with its
//! parent. The destructor of an inherited object would lock mutexes that a thread of the parent held at the fork, and stay
//! there for ever; or end the parent's sessions, delete its files and wake its threads. So in the child these destructors do
//! not run: what the objects own is leaked, and the kernel frees it with the process.

use ext_php_rs::ffi::{ext_php_rs_executor_globals, zend_object};

const NAMESPACE: &[u8] = b"Weft\\Native\\";
/// `IS_OBJ_FREE_CALLED` of zend_types.h: the store does not call the object's `free_obj` (any more).
const FREE_CALLED: u32 = 1 << 9;

/// Keeps PHP from destroying the native objects that exist. To be called on the thread of PHP in a child right after fork.
///
/// It reads and writes plain memory only, so it is safe even where another thread held the allocator's lock.
pub fn leak_inherited_objects() {
    // SAFETY: the calling thread is the one that runs PHP, stopped in the call of fork; nothing changes the store meanwhile.
    unsafe {
        let store = &(*ext_php_rs_executor_globals()).objects_store;
        // Handle 0 is never given out.
        for handle in 1..store.top as usize {
            let object = *store.object_buckets.add(handle);
            if is_valid(object) && is_native(object) {
                (*object).gc.u.type_info |= FREE_CALLED;
            }
        }
    }
}

/// A free place of the store holds the number of the next free one, marked in its lowest bit.
fn is_valid(object: *mut zend_object) -> bool {
    object as usize & 1 == 0 && !object.is_null()
}

/// Whether the object's class or one that it extends is native, such as `Weft\Http\Request`.
///
/// # Safety
/// `object` is alive.
unsafe fn is_native(object: *mut zend_object) -> bool {
    // SAFETY: a live object has a class.
    let mut class = unsafe { (*object).ce };
    while !class.is_null() {
        // SAFETY: a class has a name.
        let name = unsafe { &*(*class).name };
        // SAFETY: a string of PHP has `len` bytes from `val`.
        let bytes = unsafe { std::slice::from_raw_parts(name.val.as_ptr().cast::<u8>(), name.len) };
        if bytes.starts_with(NAMESPACE) {
            return true;
        }
        // SAFETY: a class with objects is linked, so the union holds its parent or null, and parents are linked as well.
        class = unsafe { (*class).__bindgen_anon_1.parent };
    }
    false
}
