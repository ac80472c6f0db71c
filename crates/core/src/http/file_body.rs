//! A response body that reads a file chunk by chunk.

#![allow(unsafe_code, reason = "reads a file into uninitialised memory")]

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::Frame;

use super::body_aborted::BodyAborted;
use crate::blocking::{self, Purpose};

/// Bytes per read.
pub(super) const CHUNK: u64 = 64 << 10;

pub(super) enum Segment {
    Bytes(Bytes),
    /// Bytes of the file.
    Range(Range<u64>),
}

/// Reads from the page cache on this thread, and from the disk on another one.
pub struct FileBody {
    file: Arc<File>,
    segments: VecDeque<Segment>,
    left: u64,
    reading: Option<Pin<Box<dyn Future<Output = io::Result<Bytes>>>>>,
}

impl FileBody {
    pub(super) fn new(file: Arc<File>, segments: Vec<Segment>) -> Self {
        let length = |segment: &Segment| match segment {
            Segment::Bytes(bytes) => bytes.len() as u64,
            Segment::Range(range) => range.end - range.start,
        };
        Self {
            file,
            left: segments.iter().map(length).sum(),
            segments: segments.into(),
            reading: None,
        }
    }

    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Appends as much of the next chunk to `out` as can be had without waiting for a disk.
    pub(super) fn append_cached(&mut self, out: &mut Vec<u8>) {
        if let Some(Segment::Range(range)) = self.segments.front()
            && self.reading.is_none()
        {
            let length = (range.end - range.start).min(CHUNK) as usize;
            let read = append_cached(&self.file, range.start, length, out) as u64;
            self.advance(read);
            self.left -= read;
        }
    }

    /// A file that has become shorter or cannot be read aborts the response.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let read = ready!(self.poll_chunk(context));
        Poll::Ready(Some(match read {
            Ok(bytes) if !bytes.is_empty() => {
                self.left -= bytes.len() as u64;
                Ok(Frame::data(bytes))
            }
            _ => {
                self.segments.clear();
                Err(BodyAborted)
            }
        }))
    }

    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        if let Some(reading) = &mut self.reading {
            let read = ready!(reading.as_mut().poll(context));
            self.reading = None;
            return Poll::Ready(read);
        }
        let (offset, length) = match self.segments.front_mut() {
            None => return Poll::Ready(Ok(Bytes::new())),
            Some(Segment::Bytes(bytes)) => {
                let bytes = std::mem::take(bytes);
                self.segments.pop_front();
                return Poll::Ready(Ok(bytes));
            }
            Some(Segment::Range(range)) => {
                let length = (range.end - range.start).min(CHUNK);
                (range.start, length as usize)
            }
        };
        match cached(&self.file, offset, length) {
            Some(bytes) => {
                self.advance(bytes.len() as u64);
                Poll::Ready(Ok(bytes))
            }
            None => {
                self.advance(length as u64);
                let file = Arc::clone(&self.file);
                let read = move || whole(&file, offset, length);
                let reading = async { blocking::run(Purpose::Files, read).await.flatten() };
                self.reading = Some(Box::pin(reading));
                self.poll_chunk(context)
            }
        }
    }

    fn advance(&mut self, length: u64) {
        if let Some(Segment::Range(range)) = self.segments.front_mut() {
            range.start += length;
            if range.is_empty() {
                self.segments.pop_front();
            }
        }
    }
}

/// Reads without waiting for a disk. `None` if nothing is cached, or the system does not support it.
fn cached(file: &File, offset: u64, length: usize) -> Option<Bytes> {
    let mut buffer = Vec::new();
    let read = append_cached(file, offset, length, &mut buffer);
    (read > 0).then(|| Bytes::from(buffer))
}

/// Appends at most `length` bytes. Returns how many, 0 if nothing is cached.
fn append_cached(file: &File, offset: u64, length: usize, out: &mut Vec<u8>) -> usize {
    let Ok(offset) = libc::off64_t::try_from(offset) else {
        return 0;
    };
    out.reserve(length);
    let target = libc::iovec {
        iov_base: out.spare_capacity_mut().as_mut_ptr().cast(),
        iov_len: length,
    };
    // SAFETY: the kernel writes at most `length` bytes, for which there is room.
    let read = unsafe {
        libc::preadv2(
            file.as_raw_fd(),
            &raw const target,
            1,
            offset,
            libc::RWF_NOWAIT,
        )
    };
    let read = usize::try_from(read).unwrap_or(0);
    // SAFETY: that many bytes were written behind the end.
    unsafe { out.set_len(out.len() + read) };
    read
}

fn whole(file: &File, offset: u64, length: usize) -> io::Result<Bytes> {
    let mut buffer = vec![0; length];
    file.read_exact_at(&mut buffer, offset)?;
    Ok(Bytes::from(buffer))
}
