//! `Weft\Native\HttpUpload`, and forms on their way to PHP.

use std::os::unix::ffi::OsStrExt as _;

use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, Zval};

use weft_core::blocking::{self, Purpose};
use weft_core::http::{Call, Field, MultipartError, MultipartLimits, Upload, UploadError};

use super::body_failure::body_failure;
use super::file::path_of;
use super::object;
use crate::amqp_table::binary;
use crate::convert::array_zval;
use crate::failure::Failure;
use crate::outcome::Payload;
use crate::runtime::start;

/// A file of a form, on disk until it is dropped.
#[php_class]
#[php(name = "Weft\\Native\\HttpUpload")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct HttpUpload {
    upload: Upload,
}

#[php_impl]
impl HttpUpload {
    pub fn path(&self) -> Zval {
        binary(self.upload.path().as_os_str().as_bytes())
    }

    pub fn size(&self) -> i64 {
        self.upload.size as i64
    }

    pub fn file_name(&self) -> Zval {
        binary(&self.upload.file_name)
    }

    pub fn content_type(&self) -> Option<Zval> {
        self.upload.content_type.as_deref().map(binary)
    }

    pub fn move_to(&self, path: &Zval) -> PhpResult<i64> {
        let from = self.upload.path().to_owned();
        let to = path_of(path)?;
        start(async move {
            let name = to.display().to_string();
            let moving = move || Upload::move_to(&from, &to);
            let moved = blocking::run(Purpose::Files, moving).await.flatten();
            moved.map(|()| Payload::Null).map_err(|error| {
                let message = format!("the upload cannot be moved to {name}: {error}");
                Failure::new("http.upload", message)
            })
        })
    }
}

/// Outcome: a list of `[name, value]`, where a value is a string or an upload.
pub fn read(call: &Call, limits: &ZendHashTable, directory: &Zval) -> PhpResult<i64> {
    let reading = call.read_form(self::limits(limits), path_of(directory)?);
    start(async move {
        let fields = reading.await.map_err(failure)?;
        Ok(Payload::build(move || list(fields)))
    })
}

fn limits(given: &ZendHashTable) -> MultipartLimits {
    let count = |name: &str| {
        let number = given.get(name).and_then(Zval::long).unwrap_or(0);
        u64::try_from(number).unwrap_or(0)
    };
    MultipartLimits {
        parts: count("parts") as usize,
        files: count("files") as usize,
        header_bytes: count("headerBytes") as usize,
        field_bytes: count("fieldBytes"),
        file_bytes: count("fileBytes"),
    }
}

fn list(fields: Vec<Field>) -> PhpResult<Zval> {
    let mut list = ZendHashTable::with_capacity(fields.len() as u32);
    for field in fields {
        let mut pair = ZendHashTable::with_capacity(2);
        match field {
            Field::Value { name, value } => {
                pair.push(binary(&name))?;
                pair.push(binary(&value))?;
            }
            Field::File { name, upload } => {
                pair.push(binary(&name))?;
                pair.push(object(HttpUpload { upload })?)?;
            }
            Field::NoFile { name } => {
                pair.push(binary(&name))?;
                pair.push(Zval::null())?;
            }
        }
        list.push(array_zval(pair))?;
    }
    Ok(array_zval(list))
}

fn failure(error: UploadError) -> Failure {
    let message = error.to_string();
    match error {
        UploadError::Body(error) => body_failure(error),
        UploadError::Disk { .. } => Failure::new("http.upload", message),
        UploadError::Form(MultipartError::Kind { .. }) => Failure::new("http.form.kind", message),
        UploadError::Form(MultipartError::Malformed(_)) => Failure::new("http.form", message),
        UploadError::Form(_) => Failure::new("http.body.too_large", message),
    }
}
