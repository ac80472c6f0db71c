//! Serves the files of a directory, and nothing outside it.

use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::content_encoding::{AcceptEncoding, ContentEncoding};
use super::file::{FileError, SendableFile};
use super::media_type::is_compressible;

/// Extensions of compressed siblings and their codings, the best first.
const VARIANTS: [(&str, ContentEncoding); 3] = [
    ("br", ContentEncoding::Brotli),
    ("zst", ContentEncoding::Zstd),
    ("gz", ContentEncoding::Gzip),
];

/// A directory whose files are served.
#[derive(Debug)]
pub struct StaticDir {
    root: PathBuf,
    /// Names that begin with a dot are served too.
    shows_hidden: bool,
}

/// The result of a search in a directory.
pub enum Found {
    File(SendableFile),
    Directory,
    Nothing,
}

impl StaticDir {
    /// # Errors
    /// It does not exist, or is not a directory.
    pub fn open(path: &Path, shows_hidden: bool) -> io::Result<Self> {
        let root = fs::canonicalize(path)?;
        if !root.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { root, shows_hidden })
    }

    /// Finds the file for a decoded path with slashes. A symbolic link that leads out of the directory leads to nothing.
    ///
    /// Where `accepted` allows it, the result is a compressed sibling: the same name with `.br`, `.zst` or `.gz` appended.
    ///
    /// # Errors
    /// The file exists and cannot be read.
    pub fn find(&self, path: &str, accepted: &AcceptEncoding) -> Result<Found, FileError> {
        if !self.may_be_seen(path) {
            return Ok(Found::Nothing);
        }
        match self.open_inside(&self.root.join(path)) {
            Ok(Some(file)) => Ok(Found::File(self.variant(file, accepted))),
            Err(FileError::NotAFile {
                kind: "directory", ..
            }) => Ok(Found::Directory),
            Ok(None) | Err(FileError::Missing { .. } | FileError::NotAFile { .. }) => {
                Ok(Found::Nothing)
            }
            Err(error) => Err(error),
        }
    }

    /// Opens a file below the directory. `None` if a symbolic link leads out of it.
    fn open_inside(&self, path: &Path) -> Result<Option<SendableFile>, FileError> {
        // The directory has no links in its own path, and the rest no `..`.
        if let Some(opened) = SendableFile::open_without_links(path) {
            return opened.map(Some);
        }
        let file = SendableFile::open(path)?;
        Ok(self.has(&file)?.then_some(file))
    }

    fn may_be_seen(&self, path: &str) -> bool {
        let is_plain = |name: &str| {
            !matches!(name, "" | "." | "..") && (self.shows_hidden || !name.starts_with('.'))
        };
        !path.contains('\0') && path.split('/').all(is_plain)
    }

    /// Checks the path of the open file, which can no longer be exchanged.
    fn has(&self, file: &SendableFile) -> Result<bool, FileError> {
        let link = format!("/proc/self/fd/{}", file.file().as_raw_fd());
        let real = fs::read_link(link).map_err(|source| FileError::Unreadable {
            path: file.path().to_owned(),
            source,
        })?;
        Ok(real.starts_with(&self.root))
    }

    fn variant(&self, mut file: SendableFile, accepted: &AcceptEncoding) -> SendableFile {
        if !is_compressible(file.media_type()) {
            return file;
        }
        let mut best = None;
        for (end, coding) in VARIANTS {
            let mut name = file.path().as_os_str().to_owned();
            name.push(".");
            name.push(end);
            let Ok(Some(variant)) = self.open_inside(Path::new(&name)) else {
                continue;
            };
            file.varies = true;
            let quality = accepted.quality(coding);
            if quality > best.as_ref().map_or(0, |(best, _)| *best) {
                best = Some((quality, variant.stands_for(&file, coding.name())));
            }
        }
        let varies = file.varies;
        let mut chosen = match best {
            Some((quality, variant)) if quality >= accepted.identity() => variant,
            _ => file,
        };
        chosen.varies = varies;
        chosen
    }
}
