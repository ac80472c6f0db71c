//! The libraries whose functions are replaced: PHP, its extensions, and known client libraries.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::{linker, slots};
use crate::c;

/// The files of the loaded extensions that are on the list, and of PHP itself where it is a library.
fn listed_files() -> HashSet<PathBuf> {
    let extensions = c::extensions().into_iter();
    let files = extensions.filter_map(|extension| linker::path_of(extension.handle));
    let listed = files.filter(|path| slots::is_extension(&file_name(path)));
    listed.chain(linker::php_file()).collect()
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
pub fn scan() {
    if slots::is_current() {
        return;
    }
    let files = listed_files();
    let excluded = excluded();
    let php = linker::php_file().unwrap_or_default();
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

/// Whether the connection of an interrupted call from this address stays open: curl takes the shutdown of one of its
/// descriptors for the end of a wake-up pair, and spins.
pub fn keeps_connection(caller: usize) -> bool {
    slots::name_at(caller).is_some_and(|name| name.starts_with("libcurl"))
}
