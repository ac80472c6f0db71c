//! Changes of files in watched folders.

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

const CHANGES: u32 = libc::IN_CLOSE_WRITE
    | libc::IN_MOVED_TO
    | libc::IN_MOVED_FROM
    | libc::IN_CREATE
    | libc::IN_DELETE;

/// An inotify instance.
pub(super) struct Files {
    descriptor: OwnedFd,
    folders: HashMap<i32, PathBuf>,
}

impl Files {
    pub fn new() -> io::Result<Self> {
        // SAFETY: no arguments but flags.
        let descriptor = unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            // SAFETY: the kernel has just made it for us.
            descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) },
            folders: HashMap::new(),
        })
    }

    /// Watches the files of one folder, not those of folders in it.
    pub fn watch(&mut self, folder: &Path) -> io::Result<()> {
        let path = CString::new(folder.as_os_str().as_bytes())?;
        let fd = self.descriptor.as_raw_fd();
        // SAFETY: the path ends in a zero byte and lives until the call returns.
        match unsafe { libc::inotify_add_watch(fd, path.as_ptr(), CHANGES | libc::IN_ONLYDIR) } {
            -1 => Err(io::Error::last_os_error()),
            watch => {
                self.folders.insert(watch, folder.to_owned());
                Ok(())
            }
        }
    }

    /// Paths that have changed since the last call.
    pub fn changed(&self) -> Vec<PathBuf> {
        let mut changed = Vec::new();
        let mut buffer = [0_u8; 16 * 1024];
        loop {
            let fd = self.descriptor.as_raw_fd();
            // SAFETY: the kernel writes at most as many bytes as there is room for.
            let length = unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
            match usize::try_from(length) {
                Ok(length @ 1..) => self.decode(&buffer[..length], &mut changed),
                _ => return changed,
            }
        }
    }

    /// inotify(7): watch, mask, cookie and length of the name as 32 bits each, then the name, padded with zeros.
    fn decode(&self, mut events: &[u8], changed: &mut Vec<PathBuf>) {
        while let Some((head, rest)) = events.split_first_chunk::<16>() {
            let word = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
            let watch = i32::from_ne_bytes(word(0));
            let length = u32::from_ne_bytes(word(12)) as usize;
            let Some((name, next)) = rest.split_at_checked(length) else {
                return;
            };
            let name: Vec<u8> = name.iter().copied().take_while(|byte| *byte != 0).collect();
            if let Some(folder) = self.folders.get(&watch) {
                changed.push(folder.join(std::ffi::OsString::from_vec(name)));
            }
            events = next;
        }
    }
}

impl AsFd for Files {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_file_is_named() {
        let folder = std::env::temp_dir().join(format!("weft-{}", uuid::Uuid::now_v7()));
        std::fs::create_dir(&folder).unwrap();
        let mut files = Files::new().unwrap();
        files.watch(&folder).unwrap();
        std::fs::write(folder.join("a.php"), "<?php").unwrap();
        assert!(files.changed().contains(&folder.join("a.php")));
        assert!(files.changed().is_empty());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
