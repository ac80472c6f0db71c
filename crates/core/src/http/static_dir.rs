//! The files of a folder, and nothing outside it.

use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::content_encoding::{AcceptEncoding, ContentEncoding};
use super::file::{FileError, SendableFile};
use super::media_type::is_compressible;

/// The end of a name and what it is coded with, the best first.
const VARIANTS: [(&str, ContentEncoding); 3] = [
    ("br", ContentEncoding::Brotli),
    ("zst", ContentEncoding::Zstd),
    ("gz", ContentEncoding::Gzip),
];

/// A folder whose files may be seen.
#[derive(Debug)]
pub struct StaticDir {
    root: PathBuf,
    /// Names that begin with a dot may be seen too.
    shows_hidden: bool,
}

/// What a path within a folder is.
pub enum Found {
    File(SendableFile),
    Directory,
    Nothing,
}

impl StaticDir {
    /// # Errors
    /// It is not there, or is no folder.
    pub fn open(path: &Path, shows_hidden: bool) -> io::Result<Self> {
        let root = fs::canonicalize(path)?;
        if !root.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { root, shows_hidden })
    }

    /// What a path of slashes and decoded names stands for. A link that leads out of the folder leads to nothing.
    ///
    /// Where `accepted` allows it, the result is a compressed sibling: the same name with `.br`, `.zst` or `.gz` appended.
    ///
    /// # Errors
    /// There is a file that cannot be read.
    pub fn find(&self, path: &str, accepted: &AcceptEncoding) -> Result<Found, FileError> {
        if !self.may_be_seen(path) {
            return Ok(Found::Nothing);
        }
        let path = self.root.join(path);
        let file = match SendableFile::open(&path) {
            Err(FileError::NotAFile { kind: "folder", .. }) => return Ok(Found::Directory),
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

    /// By the path of the file that is open, which nobody can exchange any more.
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
