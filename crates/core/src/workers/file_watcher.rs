//! Reports changes of files in watched directories.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};

/// An inotify instance.
pub(super) struct FileWatcher {
    descriptor: OwnedFd,
    directories: HashMap<i32, PathBuf>,
}

impl FileWatcher {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            descriptor: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            directories: HashMap::new(),
        })
    }

    /// Watches the files of one directory, not those of its subdirectories.
    pub fn watch(&mut self, directory: &Path) -> io::Result<()> {
        let changes =
            WatchFlags::CLOSE_WRITE | WatchFlags::MOVE | WatchFlags::CREATE | WatchFlags::DELETE;
        let watch = inotify::add_watch(&self.descriptor, directory, changes | WatchFlags::ONLYDIR)?;
        self.directories.insert(watch, directory.to_owned());
        Ok(())
    }

    /// Paths that have changed since the last call.
    pub fn changed(&self) -> Vec<PathBuf> {
        let mut changed = Vec::new();
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut events = Reader::new(&self.descriptor, &mut buffer);
        // The error that ends the loop is WouldBlock: there are no more events.
        while let Ok(event) = events.next() {
            if let Some(directory) = self.directories.get(&event.wd()) {
                let name = event.file_name().map_or(&[][..], |name| name.to_bytes());
                changed.push(directory.join(OsStr::from_bytes(name)));
            }
        }
        changed
    }
}

impl AsFd for FileWatcher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_file_is_named() {
        let directory = std::env::temp_dir().join(format!("weft-{}", uuid::Uuid::now_v7()));
        std::fs::create_dir(&directory).unwrap();
        let mut watcher = FileWatcher::new().unwrap();
        watcher.watch(&directory).unwrap();
        std::fs::write(directory.join("a.php"), "<?php").unwrap();
        assert!(watcher.changed().contains(&directory.join("a.php")));
        assert!(watcher.changed().is_empty());
        std::fs::remove_dir_all(directory).unwrap();
    }
}
