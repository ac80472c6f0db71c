//! `Weft\Native\HttpFile` and `HttpStaticDir`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendStr, Zval};

use weft_core::http::{AcceptEncoding, FileError, Found, SendableFile, StaticDir};

use crate::failure::Failure;
use crate::process::Process;

/// A file that can be sent.
#[php_class]
#[php(name = "Weft\\Native\\HttpFile")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct HttpFile {
    pub(super) file: SendableFile,
}

#[php_impl]
impl HttpFile {
    pub fn open(path: &Zval) -> PhpResult<Self> {
        let file = SendableFile::open(&path_of(path)?).map_err(failure)?;
        Ok(Self { file })
    }

    pub fn size(&self) -> i64 {
        self.file.size() as i64
    }

    pub fn media_type(&self) -> &'static str {
        self.file.media_type()
    }
}

/// A directory whose files can be sent.
#[php_class]
#[php(name = "Weft\\Native\\HttpStaticDir")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct HttpStaticDir {
    directory: StaticDir,
}

#[php_impl]
impl HttpStaticDir {
    pub fn open(path: &Zval, shows_hidden: bool) -> PhpResult<Self> {
        let path = path_of(path)?;
        let directory = StaticDir::open(&path, shows_hidden).map_err(|error| {
            let message = format!("the directory {} cannot be used: {error}", path.display());
            Failure::new("usage", message)
        })?;
        Ok(Self { directory })
    }

    pub fn find(&self, path: &Zval, accept: &Zval) -> PhpResult<Zval> {
        Process::refuse_after_fork()?;
        let accept = accept.zend_str().map(ZendStr::as_bytes).unwrap_or_default();
        let path = path.zend_str().map(ZendStr::as_bytes);
        let Some(Ok(path)) = path.map(std::str::from_utf8) else {
            return Ok(Zval::null());
        };
        let found = self.directory.find(path, &AcceptEncoding::parse(accept));
        Ok(match found.map_err(failure)? {
            Found::File(file) => super::object(HttpFile { file })?,
            Found::Directory => {
                let mut is_directory = Zval::new();
                is_directory.set_bool(true);
                is_directory
            }
            Found::Nothing => Zval::null(),
        })
    }
}

pub(super) fn path_of(path: &Zval) -> PhpResult<PathBuf> {
    let path = path
        .zend_str()
        .ok_or_else(|| Failure::new("usage", "a path must be a string"))?;
    Ok(Path::new(OsStr::from_bytes(path.as_bytes())).to_owned())
}

fn failure(error: FileError) -> Failure {
    let kind = match error {
        FileError::Missing { .. } | FileError::NotAFile { .. } => "http.file.missing",
        FileError::Unreadable { .. } => "http.file.unreadable",
    };
    Failure::new(kind, error.to_string())
}
