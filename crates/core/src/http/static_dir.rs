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
        let path = self.root.join(path);
        let file = match SendableFile::open(&path) {
            Err(FileError::NotAFile {
                kind: "directory", ..
            }) => return Ok(Found::Directory),
            Err(FileError::Missing { .. } | FileError::NotAFile { .. }) => {
                return Ok(Found::Nothing);
            }
            file => file?,
        };
        if !self.has(&file)? {
            return Ok(Found::Nothing);
        }
        self.variant(file, accepted).map(Found::File)
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

    fn variant(
        &self,
        mut file: SendableFile,
        accepted: &AcceptEncoding,
    ) -> Result<SendableFile, FileError> {
        if !is_compressible(file.media_type()) {
            return Ok(file);
        }
        let mut best = None;
        for (end, coding) in VARIANTS {
            let mut name = file.path().as_os_str().to_owned();
            name.push(".");
            name.push(end);
            let Ok(variant) = SendableFile::open(Path::new(&name)) else {
                continue;
            };
            file.varies = true;
            let quality = accepted.quality(coding);
            if quality > best.as_ref().map_or(0, |(best, _)| *best) && self.has(&variant)? {
                best = Some((quality, variant.stands_for(&file, coding.name())));
            }
        }
        let varies = file.varies;
        let mut chosen = match best {
            Some((quality, variant)) if quality >= accepted.identity() => variant,
            _ => file,
        };
        chosen.varies = varies;
        Ok(chosen)
    }
}
