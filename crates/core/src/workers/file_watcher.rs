//! Reports changes of files in watched directories.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

/// An inotify instance.
pub(super) struct FileWatcher {
    descriptor: OwnedFd,
    directories: HashMap<i32, PathBuf>,
}

/// What has changed in the watched directories.
#[derive(Default)]
pub(super) struct Changes {
    pub paths: Vec<PathBuf>,
    /// The queue of the kernel was full, and it has discarded further changes (`fs.inotify.max_queued_events`).
    pub are_incomplete: bool,
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

    /// The changes since the last call.
    pub fn changes(&self) -> Changes {
        let mut changes = Changes::default();
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut events = Reader::new(&self.descriptor, &mut buffer);
        // The error that ends the loop is WouldBlock: there are no more events.
        while let Ok(event) = events.next() {
            changes.are_incomplete |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            if let Some(directory) = self.directories.get(&event.wd()) {
                let name = event.file_name().map_or(&[][..], |name| name.to_bytes());
                changes.paths.push(directory.join(OsStr::from_bytes(name)));
            }
        }
        changes
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
        let changes = watcher.changes();
        assert!(changes.paths.contains(&directory.join("a.php")));
        assert!(!changes.are_incomplete);
        assert!(watcher.changes().paths.is_empty());
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn more_changes_than_the_kernel_queues_are_reported_as_incomplete() {
        let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let limit: usize = limit.trim().parse().unwrap();
        let directory = std::env::temp_dir().join(format!("weft-{}", uuid::Uuid::now_v7()));
        std::fs::create_dir(&directory).unwrap();
        let mut watcher = FileWatcher::new().unwrap();
        watcher.watch(&directory).unwrap();
        // Equal events in succession count once.
        let (one, other) = (directory.join("a.php"), directory.join("b.php"));
        std::fs::write(&one, "<?php").unwrap();
        for _ in 0..=limit / 2 {
            std::fs::rename(&one, &other).unwrap();
            std::fs::rename(&other, &one).unwrap();
        }
        assert!(watcher.changes().are_incomplete);
        assert!(!watcher.changes().are_incomplete);
        std::fs::remove_dir_all(directory).unwrap();
    }
}
