//! The objects that the dynamic linker has loaded, and the tables of addresses through which they call functions of others.

#![allow(unsafe_code, reason = "reads and writes tables of the dynamic linker")]

use std::collections::HashMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libc::{Elf64_Addr, Elf64_Phdr, Elf64_Sym, dl_phdr_info};

use crate::c::LibraryHandle;

/// The path by which the linker knows a library.
pub fn path_of(handle: LibraryHandle) -> Option<PathBuf> {
    /// The beginning of `struct link_map` (link.h).
    #[repr(C)]
    struct LinkMap {
        _base: usize,
        name: *const c_char,
    }
    let mut map: *const LinkMap = std::ptr::null();
    // SAFETY: the handle is that of a loaded library, and the linker fills in the pointer.
    unsafe {
        if libc::dlinfo(handle.0, libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) != 0
            || map.is_null()
        {
            return None;
        }
        Some(to_path(CStr::from_ptr((*map).name)))
    }
}

/// The file that contains PHP: the program, which the linker knows by an empty name, or libphp.
pub fn php_file() -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked for; the answer is only read where there is one.
    unsafe {
        let known = ext_php_rs::ffi::zend_throw_exception_object as *const c_void;
        if libc::dladdr(known, info.as_mut_ptr()) == 0 {
            return None;
        }
        Some(to_path(CStr::from_ptr(info.assume_init().dli_fname)))
    }
}

fn to_path(name: &CStr) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(name.to_bytes()))
}

/// The number of objects ever loaded.
pub fn count_loaded() -> u64 {
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
pub struct Loaded {
    /// Empty for the program.
    pub path: Vec<u8>,
    base: usize,
    pub addresses: Range<usize>,
    headers: Vec<Elf64_Phdr>,
}

/// The loaded objects.
pub fn objects() -> Vec<Loaded> {
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
    /// The file name without the path.
    pub fn name(&self) -> String {
        let path = if self.path.is_empty() {
            std::env::current_exe().ok()
        } else {
            Some(Path::new(OsStr::from_bytes(&self.path)).to_path_buf())
        };
        let name = path.as_deref().and_then(Path::file_name);
        name.map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// Writes the address of a replacement to the slot of each function in the table. Returns the names of the functions that were
    /// replaced.
    pub fn replace(
        &self,
        table: &HashMap<&'static [u8], (&'static str, usize)>,
    ) -> Vec<&'static str> {
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
