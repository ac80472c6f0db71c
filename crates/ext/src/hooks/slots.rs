//! Replaces functions of libc in the jump slots of loaded objects.
//!
//! A shared object calls a function of another through a table of addresses that the dynamic linker has filled in, and its relocations name
//! the function of each entry (System V ABI, "Dynamic Linking"). Only listed objects are changed: a library that holds a lock of its own
//! while it waits would hang if another task came to the same lock. libc and this library are never changed.

use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::linker;
use crate::c;

/// A loaded object that was changed.
#[derive(Clone)]
pub struct Object {
    /// Its file name without the path.
    pub name: String,
    pub functions: Vec<&'static str>,
    addresses: Range<usize>,
}

struct Slots {
    objects: Vec<Object>,
    /// `dlpi_adds` of `dl_iterate_phdr`: the number of objects ever loaded. While it is unchanged, no object is new.
    loaded: u64,
}

static SLOTS: Mutex<Slots> = Mutex::new(Slots {
    objects: Vec::new(),
    loaded: 0,
});

fn slots() -> MutexGuard<'static, Slots> {
    SLOTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Client libraries whose waits are known to hold no lock that another task could come to. A name ends before `.so` or `-`.
const LIBRARIES: [&str; 15] = [
    "libpq",
    "libcurl",
    "libcurl-gnutls",
    "libmysqlclient",
    "libmariadb",
    "librabbitmq",
    "libmemcached",
    "libhiredis",
    "libssh2",
    "libldap",
    "libldap_r",
    "liblber",
    "libnsl",
    "libc-client",
    "libsqlite3",
];

/// Extensions that wait for a debugger, have an event loop of their own or hold locks while they wait.
const EXCLUDED: [&str; 12] = [
    "weft",
    "opcache",
    "xdebug",
    "pcov",
    "swoole",
    "openswoole",
    "swow",
    "parallel",
    "grpc",
    "rdkafka",
    "uv",
    "pcntl",
];

/// Replaces the functions in every listed object that has not been changed yet.
///
/// `is_listed` is asked for the path of each object; the empty path is the program.
pub fn replace(is_listed: impl Fn(&Path) -> bool) {
    let mut slots = slots();
    slots.loaded = linker::count_loaded();
    let own = own_address();
    let table = c::replacements();
    for loaded in linker::objects() {
        let is_known = slots
            .objects
            .iter()
            .any(|object| object.addresses == loaded.addresses);
        if is_known
            || loaded.addresses.contains(&own)
            || !is_listed(Path::new(std::ffi::OsStr::from_bytes(&loaded.path)))
        {
            continue;
        }
        let functions = loaded.replace(&table);
        if !functions.is_empty() {
            slots.objects.push(Object {
                name: loaded.name(),
                functions,
                addresses: loaded.addresses,
            });
        }
    }
}

/// Whether no object was loaded since the last call of [`replace`].
pub fn is_current() -> bool {
    slots().loaded == linker::count_loaded()
}

/// The changes.
pub fn changed() -> Vec<Object> {
    slots().objects.clone()
}

/// Whether this is a client library on the list, by its file name.
pub fn is_library(name: &str) -> bool {
    LIBRARIES.iter().any(|library| {
        let rest = name.strip_prefix(library);
        rest.is_some_and(|rest| rest.starts_with(".so") || rest.starts_with('-'))
    })
}

/// Whether an extension of PHP is on the list, by the name of its file.
pub fn is_extension(name: &str) -> bool {
    let name = name.split('.').next().unwrap_or(name);
    !EXCLUDED.contains(&name.strip_prefix("lib").unwrap_or(name)) && !EXCLUDED.contains(&name)
}

/// The name of the changed object that has this address.
pub fn name_at(address: usize) -> Option<String> {
    let slots = slots();
    let object = slots
        .objects
        .iter()
        .find(|object| object.addresses.contains(&address));
    object.map(|object| object.name.clone())
}

fn own_address() -> usize {
    own_address as fn() -> usize as usize
}
