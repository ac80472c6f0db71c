//! Forms with files: values are kept in memory, files are written to disk as they arrive.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::mem;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bytes::Bytes;

use super::multipart::{Event, MultipartLimits, Parser};
use super::part_headers::{MultipartError, PartHead};
use super::request_body::{BodyError, RequestBody};
use crate::blocking::{self, Purpose};

/// Bytes of a file per write, which happens on a thread that may wait for the disk.
const CHUNK: usize = 256 << 10;

#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error(transparent)]
    Form(#[from] MultipartError),
    #[error("an upload cannot be kept in {}: {source}", .directory.display())]
    Disk {
        directory: PathBuf,
        source: io::Error,
    },
}

/// One part of a form. Names are what the client sends: any bytes.
pub enum Field {
    Value {
        name: Vec<u8>,
        value: Vec<u8>,
    },
    File {
        name: Vec<u8>,
        upload: Upload,
    },
    /// A file field without a chosen file.
    NoFile {
        name: Vec<u8>,
    },
}

/// An uploaded file, deleted when this is dropped.
#[derive(Debug)]
pub struct Upload {
    pub file_name: Vec<u8>,
    /// As the client claims; not verified.
    pub content_type: Option<Vec<u8>>,
    pub size: u64,
    file: TemporaryFile,
}

impl Upload {
    pub fn path(&self) -> &Path {
        &self.file.0
    }

    /// Moves the file, replacing an existing one. Waits for the disk: not for the thread of an event loop.
    ///
    /// # Errors
    /// The file stays where it is.
    pub fn move_to(path: &Path, to: &Path) -> io::Result<()> {
        match std::fs::rename(path, to) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
            moved => return moved,
        }
        let (part, _) = TemporaryFile::create(to.parent().unwrap_or(Path::new(".")))?;
        std::fs::copy(path, &part.0)?;
        std::fs::rename(&part.0, to)?;
        std::fs::remove_file(path)
    }
}

/// A file that is deleted when this is dropped. It is kept closed, so that a form of many files takes no descriptors.
#[derive(Debug)]
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn create(directory: &Path) -> io::Result<(Self, File)> {
        let name = format!("weft-{}", uuid::Uuid::new_v4().simple());
        let path = directory.join(name);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok((Self(path), file))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // It may have been moved.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Reads a form to its end. After a cancellation or a failure no file is left behind, and the rest of the body cannot be read.
pub(super) async fn read_form(
    body: Rc<RequestBody>,
    content_type: Option<Vec<u8>>,
    limits: MultipartLimits,
    directory: PathBuf,
) -> Result<Vec<Field>, UploadError> {
    let mut parser = Parser::new(content_type.as_deref(), limits.clone())?;
    let _spoiled = Spoiled(Rc::clone(&body));
    let mut form = Form {
        limits,
        directory,
        fields: Vec::new(),
        files: 0,
        field_bytes: 0,
        open: None,
    };
    loop {
        let chunk = Rc::clone(&body).next().await?;
        if chunk.is_empty() {
            break;
        }
        parser.feed(&chunk)?;
        while let Some(event) = parser.event() {
            form.take(event).await?;
        }
    }
    parser.finish()?;
    Ok(form.fields)
}

/// A body of which a part was read as a form.
struct Spoiled(Rc<RequestBody>);

impl Drop for Spoiled {
    fn drop(&mut self) {
        self.0.invalidate();
    }
}

struct Form {
    limits: MultipartLimits,
    directory: PathBuf,
    fields: Vec<Field>,
    files: usize,
    field_bytes: u64,
    open: Option<Part>,
}

/// The one that is arriving.
enum Part {
    Value { name: Vec<u8>, value: Vec<u8> },
    File(Spool),
}

/// A file that is arriving.
struct Spool {
    head: PartHead,
    size: u64,
    waiting: Vec<u8>,
    file: Option<(TemporaryFile, File)>,
}

impl Form {
    async fn take(&mut self, event: Event) -> Result<(), UploadError> {
        match event {
            Event::Begin(head) => self.begin(head),
            Event::Data(data) => self.append(&data).await,
            Event::End => self.end().await,
        }
    }

    fn begin(&mut self, head: PartHead) -> Result<(), UploadError> {
        self.count(head.name.len())?;
        self.count_file(&head)?;
        self.open = Some(match head.file_name {
            None => Part::Value {
                name: head.name,
                value: Vec::new(),
            },
            Some(_) => Part::File(Spool {
                head,
                size: 0,
                waiting: Vec::new(),
                file: None,
            }),
        });
        Ok(())
    }

    /// A file field without a chosen file has an empty file name. It counts too, because it could have contents.
    fn count_file(&mut self, head: &PartHead) -> Result<(), MultipartError> {
        self.files += usize::from(head.file_name.is_some());
        let limit = self.limits.files;
        match self.files > limit {
            true => Err(MultipartError::Files { limit }),
            false => Ok(()),
        }
    }

    fn count(&mut self, bytes: usize) -> Result<(), MultipartError> {
        self.field_bytes += bytes as u64;
        let limit = self.limits.field_bytes;
        match self.field_bytes > limit {
            true => Err(MultipartError::Fields { limit }),
            false => Ok(()),
        }
    }

    async fn append(&mut self, data: &Bytes) -> Result<(), UploadError> {
        match self.open.take() {
            None => {}
            Some(Part::Value { name, mut value }) => {
                self.count(data.len())?;
                value.extend_from_slice(data);
                self.open = Some(Part::Value { name, value });
            }
            Some(Part::File(mut spool)) => {
                spool.size += data.len() as u64;
                if spool.size > self.limits.file_bytes {
                    let name = String::from_utf8_lossy(&spool.head.name).into_owned();
                    let limit = self.limits.file_bytes;
                    return Err(MultipartError::File { name, limit }.into());
                }
                spool.waiting.extend_from_slice(data);
                if spool.waiting.len() >= CHUNK {
                    let file = spool.write(&self.directory).await?;
                    spool.file = Some(file);
                }
                self.open = Some(Part::File(spool));
            }
        }
        Ok(())
    }

    async fn end(&mut self) -> Result<(), UploadError> {
        match self.open.take() {
            None => {}
            Some(Part::Value { name, value }) => self.fields.push(Field::Value { name, value }),
            // A browser sends this for a file field without a chosen file.
            Some(Part::File(spool)) if spool.size == 0 && spool.has_no_name() => {
                self.fields.push(Field::NoFile {
                    name: spool.head.name,
                });
            }
            Some(Part::File(mut spool)) => {
                let (file, _) = spool.write(&self.directory).await?;
                self.fields.push(Field::File {
                    name: spool.head.name,
                    upload: Upload {
                        file_name: spool.head.file_name.unwrap_or_default(),
                        content_type: spool.head.content_type,
                        size: spool.size,
                        file,
                    },
                });
            }
        }
        Ok(())
    }
}

impl Spool {
    fn has_no_name(&self) -> bool {
        self.head.file_name.as_ref().is_none_or(Vec::is_empty)
    }

    /// Writes buffered bytes to the disk.
    async fn write(&mut self, directory: &Path) -> Result<(TemporaryFile, File), UploadError> {
        let data = mem::take(&mut self.waiting);
        let file = self.file.take();
        let place = directory.to_owned();
        let writing = blocking::run(Purpose::Files, move || {
            let (path, mut file) = file.map_or_else(|| TemporaryFile::create(&place), Ok)?;
            file.write_all(&data)?;
            io::Result::Ok((path, file))
        });
        let written = writing.await.flatten();
        written.map_err(|source| UploadError::Disk {
            directory: directory.to_owned(),
            source,
        })
    }
}
