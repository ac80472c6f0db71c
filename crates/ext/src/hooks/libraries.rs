//! The libraries whose functions are replaced: PHP, its extensions, and known client libraries.

use std::collections::HashSet;
use std::ffi::{CStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::slots;

unsafe extern "C" {
    fn weft_each_extension(
        visit: extern "C" fn(handle: *mut c_void, context: *mut c_void),
        context: *mut c_void,
    );
}

/// The files of the loaded extensions that are on the list, and of PHP itself where it is a library.
fn listed_files() -> HashSet<PathBuf> {
    extern "C" fn visit(handle: *mut c_void, context: *mut c_void) {
        // SAFETY: `context` is the set of the caller below.
        let files = unsafe { &mut *context.cast::<HashSet<PathBuf>>() };
        if let Some(path) = path_of(handle) {
            files.insert(path);
        }
    }
    let mut files: HashSet<PathBuf> = HashSet::new();
    // SAFETY: PHP's own thread; the callback only inserts.
    unsafe { weft_each_extension(visit, (&raw mut files).cast()) };
    files.retain(|path| slots::is_extension(&file_name(path)));
    files.extend(php_file());
    files
}

/// The path by which the linker knows a library.
fn path_of(handle: *mut c_void) -> Option<PathBuf> {
    /// The beginning of `struct link_map` (link.h).
    #[repr(C)]
    struct LinkMap {
        _base: usize,
        name: *const c_char,
    }
    let mut map: *const LinkMap = std::ptr::null();
    // SAFETY: the handle is that of a loaded library, and the linker fills in the pointer.
    unsafe {
        if libc::dlinfo(handle, libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) != 0 || map.is_null()
        {
            return None;
        }
        Some(to_path(CStr::from_ptr((*map).name)))
    }
}

/// The file that contains PHP: the program, which the linker knows by an empty name, or libphp.
fn php_file() -> Option<PathBuf> {
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
    PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes()))
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Beginnings of the names of files whose calls stay as they are: the environment variable `WEFT_HOOKS_EXCLUDE`.
fn excluded() -> Vec<String> {
    let names = std::env::var("WEFT_HOOKS_EXCLUDE").unwrap_or_default();
    let names = names.split(',').map(str::trim);
    let names = names.filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// Replaces the functions in what was loaded since the last call.
#[unsafe(no_mangle)]
pub extern "C" fn weft_scan_libraries() {
    if slots::is_current() {
        return;
    }
    let files = listed_files();
    let excluded = excluded();
    let php = php_file().unwrap_or_default();
    let php_is_program = !file_name(&php).contains(".so");
    slots::replace(|path| {
        let is_program = path.as_os_str().is_empty();
        let name = file_name(if is_program { &php } else { path });
        let is_listed = match is_program {
            true => php_is_program,
            false => files.contains(path) || slots::is_library(&name),
        };
        is_listed && !excluded.iter().any(|excluded| name.starts_with(excluded))
    });
}

/// curl takes the shutdown of one of its descriptors for the end of a wake-up pair, and spins.
#[unsafe(no_mangle)]
extern "C" fn weft_caller_keeps_connection(caller: *const c_void) -> bool {
    slots::name_at(caller as usize).is_some_and(|name| name.starts_with("libcurl"))
}
