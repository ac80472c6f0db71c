//! Files as responses: whole, in ranges, or 304 if the client has them.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Response, StatusCode};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use super::body::Body;
use super::conditional::{Validators, Verdict, parse_date, whole_seconds};
use super::file_body::{FileBody, Segment};
use super::media_type::media_type;
use super::range::{Wanted, wanted};

/// Why a file cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{} is not there", .path.display())]
    Missing { path: PathBuf },
    #[error("{} is a {kind}, not a file", .path.display())]
    NotAFile { path: PathBuf, kind: &'static str },
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
}

/// An open file with the metadata it had when it was opened.
pub struct SendableFile {
    file: Arc<File>,
    path: PathBuf,
    size: u64,
    modified: SystemTime,
    media_type: &'static str,
    /// The content coding of the file, if it is a compressed sibling.
    pub(super) coding: Option<&'static str>,
    /// Another client may get another coding (Vary).
    pub(super) varies: bool,
}

impl SendableFile {
    /// Opens the file. This asks the file system, and does not wait for the contents.
    ///
    /// # Errors
    /// It does not exist, is not a regular file, or cannot be read.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let file = OpenOptions::new()
            .read(true)
            // Without O_NONBLOCK, opening a pipe waits for a writer.
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)
            .map_err(|source| refusal(path, source))?;
        Self::of(file, path)
    }

    /// The same for an absolute path without symbolic links. `None` if there is one, or if the system cannot tell: `openat2` came with
    /// Linux 5.6, and some containers forbid it.
    pub(super) fn open_without_links(path: &Path) -> Option<Result<Self, FileError>> {
        let flags = OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
        match opened {
            Ok(file) => Some(Self::of(file.into(), path)),
            Err(Errno::LOOP | Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::AGAIN) => None,
            Err(error) => Some(Err(refusal(path, error.into()))),
        }
    }

    fn of(file: File, path: &Path) -> Result<Self, FileError> {
        let metadata = file.metadata().map_err(|source| refusal(path, source))?;
        if !metadata.is_file() {
            let kind = if metadata.is_dir() {
                "directory"
            } else {
                "device or pipe"
            };
            let path = path.to_owned();
            return Err(FileError::NotAFile { path, kind });
        }
        Ok(Self {
            size: metadata.len(),
            modified: metadata.modified().unwrap_or(UNIX_EPOCH),
            media_type: media_type(&path.to_string_lossy()),
            file: Arc::new(file),
            path: path.to_owned(),
            coding: None,
            varies: false,
        })
    }

    /// Size in bytes when it was opened.
    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn media_type(&self) -> &'static str {
        self.media_type
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The same contents in another coding, from a sibling file.
    pub(super) fn stands_for(mut self, original: &Self, coding: &'static str) -> Self {
        self.media_type = original.media_type;
        self.coding = Some(coding);
        self
    }

    /// Made of modification time and size: a write that changes neither, within the clock's precision, keeps the tag.
    fn tag(&self) -> String {
        let since = self.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("\"{:x}-{:x}\"", since.as_nanos(), self.size)
    }

    /// The response to a request. Given fields replace those of the file. Preconditions and ranges apply to status 200 and the methods
    /// GET and HEAD.
    pub fn answer(
        &self,
        request: &Parts,
        status: StatusCode,
        headers: HeaderMap,
    ) -> Response<Body> {
        let mut response = Response::new(Body::Empty);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        self.describe(response.headers_mut());
        let is_reading = request.method == Method::GET || request.method == Method::HEAD;
        if status != StatusCode::OK || !is_reading {
            return self.whole(response);
        }
        let headers = response.headers_mut();
        let unit = HeaderValue::from_static("bytes");
        headers.entry(header::ACCEPT_RANGES).or_insert(unit);
        let tag = headers.get(header::ETAG).map(HeaderValue::as_bytes);
        // A handler may have set another date than the file's.
        let modified = headers.get(header::LAST_MODIFIED);
        let modified = modified.and_then(|date| parse_date(date.as_bytes()));
        let state = Validators {
            tag: tag.unwrap_or_default(),
            modified: modified.unwrap_or(self.modified),
        };
        match state.evaluate(&request.headers) {
            Verdict::NotModified => return without_contents(response, StatusCode::NOT_MODIFIED),
            Verdict::Failed => return without_contents(response, StatusCode::PRECONDITION_FAILED),
            Verdict::Proceed => {}
        }
        let field = request.headers.get(header::RANGE);
        let field = field.filter(|_| request.method == Method::GET);
        match field.filter(|_| state.allow_ranges(&request.headers)) {
            None => self.whole(response),
            Some(field) => match wanted(field.as_bytes(), self.size) {
                Wanted::Everything => self.whole(response),
                Wanted::Nothing => self.unsatisfiable(response),
                Wanted::Parts(parts) => self.partial(response, parts),
            },
        }
    }

    fn describe(&self, headers: &mut HeaderMap) {
        let text = |text: String| HeaderValue::try_from(text).ok();
        let kind = HeaderValue::from_static(self.media_type);
        headers.entry(header::CONTENT_TYPE).or_insert(kind);
        if let Some(tag) = text(self.tag()) {
            headers.entry(header::ETAG).or_insert(tag);
        }
        // §8.8.2.1: not later than now.
        let modified = whole_seconds(self.modified.min(SystemTime::now()));
        if let Some(date) = text(httpdate::fmt_http_date(modified)) {
            headers.entry(header::LAST_MODIFIED).or_insert(date);
        }
        if let Some(coding) = self.coding {
            let coding = HeaderValue::from_static(coding);
            headers.insert(header::CONTENT_ENCODING, coding);
        }
        if self.varies {
            headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
    }

    fn whole(&self, response: Response<Body>) -> Response<Body> {
        self.with_segments(response, [Segment::Range(0..self.size)])
    }

    fn unsatisfiable(&self, response: Response<Body>) -> Response<Body> {
        let mut response = without_contents(response, StatusCode::RANGE_NOT_SATISFIABLE);
        let range = format!("bytes */{}", self.size);
        insert(response.headers_mut(), header::CONTENT_RANGE, range);
        response
    }

    fn partial(&self, mut response: Response<Body>, parts: Vec<Range<u64>>) -> Response<Body> {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let headers = response.headers_mut();
        if let [part] = parts.as_slice() {
            insert(headers, header::CONTENT_RANGE, self.content_range(part));
            return self.with_segments(response, [Segment::Range(part.clone())]);
        }
        let boundary = uuid::Uuid::new_v4().simple().to_string();
        let kind = headers.remove(header::CONTENT_TYPE);
        let segments = self.multipart(&boundary, kind.as_ref(), parts);
        let kind = format!("multipart/byteranges; boundary={boundary}");
        insert(headers, header::CONTENT_TYPE, kind);
        self.with_segments(response, segments)
    }

    /// §14.6
    fn multipart(
        &self,
        boundary: &str,
        kind: Option<&HeaderValue>,
        parts: Vec<Range<u64>>,
    ) -> Vec<Segment> {
        let mut segments = Vec::with_capacity(parts.len() * 2 + 1);
        let mut before = "";
        for part in parts {
            let mut head = format!("{before}--{boundary}\r\n").into_bytes();
            if let Some(kind) = kind {
                head.extend_from_slice(b"content-type: ");
                head.extend_from_slice(kind.as_bytes());
                head.extend_from_slice(b"\r\n");
            }
            let range = format!("content-range: {}\r\n\r\n", self.content_range(&part));
            head.extend_from_slice(range.as_bytes());
            segments.push(Segment::Bytes(Bytes::from(head)));
            segments.push(Segment::Range(part));
            before = "\r\n";
        }
        segments.push(Segment::Bytes(Bytes::from(format!(
            "\r\n--{boundary}--\r\n"
        ))));
        segments
    }

    fn content_range(&self, part: &Range<u64>) -> String {
        format!("bytes {}-{}/{}", part.start, part.end - 1, self.size)
    }

    fn with_segments(
        &self,
        response: Response<Body>,
        segments: impl Into<Vec<Segment>>,
    ) -> Response<Body> {
        let body = FileBody::new(Arc::clone(&self.file), segments.into());
        response.map(|_| Body::File(Box::new(body)))
    }
}

/// A field value made here, which is always valid.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: String) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

/// Removes fields about the contents from a response without them.
fn without_contents(mut response: Response<Body>, status: StatusCode) -> Response<Body> {
    *response.status_mut() = status;
    let of_contents = [
        header::CONTENT_TYPE,
        header::CONTENT_ENCODING,
        header::CONTENT_LANGUAGE,
        header::CONTENT_DISPOSITION,
        header::CONTENT_LENGTH,
    ];
    for name in of_contents {
        response.headers_mut().remove(name);
    }
    response
}

fn refusal(path: &Path, source: io::Error) -> FileError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::InvalidFilename => FileError::Missing { path },
        // A loop of symbolic links; std has no stable name for it.
        _ if source.raw_os_error() == Some(libc::ELOOP) => FileError::Missing { path },
        _ => FileError::Unreadable { path, source },
    }
}
