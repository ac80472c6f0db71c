//! Replaces functions of libc in the jump slots of loaded objects.
//!
//! A shared object calls a function of another through a table of addresses that the dynamic linker has filled in, and its relocations name
//! the function of each entry (System V ABI, "Dynamic Linking"). Only listed objects are changed: a library that holds a lock of its own
//! while it waits would hang if another task came to the same lock. libc and this library are never changed.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use libc::{Elf64_Addr, Elf64_Phdr, Elf64_Sym, dl_phdr_info};

/// `weft_replacement` of hooks.h.
#[repr(C)]
struct Replacement {
    name: *const c_char,
    replacement: *mut c_void,
}

unsafe extern "C" {
    static weft_replacements: [Replacement; 0];
    static weft_replacement_count: usize;
}

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
    slots.loaded = count_loaded();
    let own = own_address();
    let table = table();
    for loaded in objects() {
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
    slots().loaded == count_loaded()
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

fn table() -> HashMap<&'static [u8], (&'static str, usize)> {
    // SAFETY: the table is constant data of this library.
    let entries = unsafe {
        std::slice::from_raw_parts(
            (&raw const weft_replacements).cast::<Replacement>(),
            weft_replacement_count,
        )
    };
    let entries = entries.iter().map(|entry| {
        // SAFETY: names are string literals.
        let name: &'static CStr = unsafe { CStr::from_ptr(entry.name) };
        (
            name.to_bytes(),
            (
                name.to_str().unwrap_or_default(),
                entry.replacement as usize,
            ),
        )
    });
    entries.collect()
}

fn own_address() -> usize {
    own_address as fn() -> usize as usize
}

fn count_loaded() -> u64 {
    unsafe extern "C" fn first(info: *mut dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
        // SAFETY: the linker passes valid pointers, and `found` is that of the caller below.
        unsafe { *found.cast::<u64>() = (*info).dlpi_adds };
        1
    }
    let mut count = 0_u64;
    // SAFETY: the callback only writes the number.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut count).cast()) };
    count
}

/// An object as the dynamic linker has loaded it.
struct Loaded {
    path: Vec<u8>,
    base: usize,
    addresses: Range<usize>,
    headers: Vec<Elf64_Phdr>,
}

fn objects() -> Vec<Loaded> {
    unsafe extern "C" fn push(info: *mut dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
        // SAFETY: the linker passes valid pointers, and `found` is that of the caller below.
        let (info, found) = unsafe { (&*info, &mut *found.cast::<Vec<Loaded>>()) };
        // SAFETY: the linker keeps name and headers while the object is loaded.
        let (path, headers) = unsafe {
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
            (
                CStr::from_ptr(info.dlpi_name).to_bytes().to_vec(),
                headers.to_vec(),
            )
        };
        let base = info.dlpi_addr as usize;
        let segments = headers
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD);
        let start = segments
            .clone()
            .map(|header| base + header.p_vaddr as usize)
            .min();
        let end = segments
            .map(|header| base + (header.p_vaddr + header.p_memsz) as usize)
            .max();
        if let (Some(start), Some(end)) = (start, end) {
            found.push(Loaded {
                path,
                base,
                addresses: start..end,
                headers,
            });
        }
        0
    }
    let mut found: Vec<Loaded> = Vec::new();
    // SAFETY: the callback only pushes to the list.
    unsafe { libc::dl_iterate_phdr(Some(push), (&raw mut found).cast()) };
    found
}

// Names of elf.h.
const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;

#[cfg(target_arch = "x86_64")]
const SLOT_RELOCATIONS: [u32; 2] = [6, 7]; // R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT
#[cfg(target_arch = "aarch64")]
const SLOT_RELOCATIONS: [u32; 2] = [1025, 1026]; // R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const SLOT_RELOCATIONS: [u32; 0] = [];

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// A relocation with an addend, the only kind of the 64-bit machines listed above.
#[repr(C)]
struct Relocation {
    offset: Elf64_Addr,
    info: u64,
    _addend: i64,
}

impl Loaded {
    fn name(&self) -> String {
        let path = if self.path.is_empty() {
            std::env::current_exe().ok()
        } else {
            Some(Path::new(std::ffi::OsStr::from_bytes(&self.path)).to_path_buf())
        };
        let name = path.as_deref().and_then(Path::file_name);
        name.map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// Returns the names of the functions that were replaced.
    fn replace(&self, table: &HashMap<&'static [u8], (&'static str, usize)>) -> Vec<&'static str> {
        let mut replaced = Vec::new();
        for (slot, name) in self.slots() {
            let Some((name, replacement)) = table.get(name) else {
                continue;
            };
            if self.write(slot, *replacement) && !replaced.contains(name) {
                replaced.push(*name);
            }
        }
        replaced.sort_unstable();
        replaced
    }

    /// The slots of functions and the name of each.
    fn slots(&self) -> Vec<(usize, &[u8])> {
        let Some(dynamic) = self
            .headers
            .iter()
            .find(|header| header.p_type == libc::PT_DYNAMIC)
        else {
            return Vec::new();
        };
        let mut entries = HashMap::new();
        let mut entry = (self.base + dynamic.p_vaddr as usize) as *const Dynamic;
        // SAFETY: the dynamic section ends with an entry of tag 0 and stays mapped while the object is loaded.
        unsafe {
            while (*entry).tag != 0 {
                entries.insert((*entry).tag, (*entry).value as usize);
                entry = entry.add(1);
            }
        }
        // glibc stores addresses here, musl leaves offsets.
        let address = |tag| {
            let value: usize = *entries.get(&tag)?;
            Some(if value < self.base {
                self.base + value
            } else {
                value
            })
        };
        let (Some(symbols), Some(names)) = (address(DT_SYMTAB), address(DT_STRTAB)) else {
            return Vec::new();
        };
        let size = |tag| entries.get(&tag).copied().unwrap_or(0) / size_of::<Relocation>();
        let tables = [
            (address(DT_JMPREL), size(DT_PLTRELSZ)),
            (address(DT_RELA), size(DT_RELASZ)),
        ];
        let mut slots = Vec::new();
        for (relocations, count) in tables {
            let Some(relocations) = relocations else {
                continue;
            };
            for index in 0..count {
                // SAFETY: the dynamic section says where the tables are, and the linker has used them before.
                unsafe {
                    let relocation = &*(relocations as *const Relocation).add(index);
                    let kind = relocation.info as u32;
                    if !SLOT_RELOCATIONS.contains(&kind) {
                        continue;
                    }
                    let symbol =
                        &*(symbols as *const Elf64_Sym).add((relocation.info >> 32) as usize);
                    let name = CStr::from_ptr((names + symbol.st_name as usize) as *const c_char);
                    slots.push((self.base + relocation.offset as usize, name.to_bytes()));
                }
            }
        }
        slots
    }

    /// Objects are linked so that the linker write-protects their slots (RELRO): they are made writable for the moment.
    fn write(&self, slot: usize, value: usize) -> bool {
        // SAFETY: sysconf only reads.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let start = slot & !(page - 1);
        let is_protected = self.headers.iter().any(|header| {
            let from = (self.base + header.p_vaddr as usize) & !(page - 1);
            let to = (self.base + (header.p_vaddr + header.p_memsz) as usize) & !(page - 1);
            header.p_type == libc::PT_GNU_RELRO && (from..to).contains(&slot)
        });
        // SAFETY: the page belongs to the object's data. Another thread that calls through the slot reads the old or the new address.
        unsafe {
            if is_protected
                && libc::mprotect(
                    start as *mut c_void,
                    page,
                    libc::PROT_READ | libc::PROT_WRITE,
                ) != 0
            {
                return false;
            }
            (*(slot as *const std::sync::atomic::AtomicUsize))
                .store(value, std::sync::atomic::Ordering::Relaxed);
            if is_protected {
                libc::mprotect(start as *mut c_void, page, libc::PROT_READ);
            }
        }
        true
    }
}
