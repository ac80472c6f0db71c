//! `Weft\Native\HttpStream`

use std::cell::RefCell;

use bytes::Bytes;
use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, Zval};

use weft_core::http::{BodyAborted, BodyWriter};

use super::fields::header_map;
use crate::failure::Failure;
use crate::outcome::Payload;
use crate::process::Process;
use crate::runtime::start;

/// A response body on its way.
#[php_class]
#[php(name = "Weft\\Native\\HttpStream")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct HttpStream {
    /// `None` once it has ended.
    writer: RefCell<Option<BodyWriter>>,
}

#[php_impl]
impl HttpStream {
    pub fn write(&self, bytes: &Zval) -> PhpResult<i64> {
        Process::refuse_after_fork()?;
        let chunk = bytes
            .zend_str()
            .ok_or_else(|| Failure::new("usage", "a chunk of a response must be a string"))?;
        let Some(room) = self.send(chunk.as_bytes())? else {
            return Ok(0);
        };
        start(async move { room.await.map(|()| Payload::Null).map_err(gone) })
    }

    pub fn end(&self, trailers: &ZendHashTable) -> PhpResult<()> {
        let trailers = match trailers.is_empty() {
            true => None,
            false => Some(header_map(trailers)?),
        };
        if let Some(writer) = self.writer.borrow_mut().take() {
            writer.end(trailers);
        }
        Ok(())
    }

    pub fn abort(&self) {
        let writer = self.writer.borrow_mut().take();
        drop(writer);
    }
}

impl HttpStream {
    /// Its error becomes an exception, for which PHP code runs, when the writer is not borrowed any more.
    fn send(
        &self,
        chunk: &[u8],
    ) -> Result<Option<impl Future<Output = Result<(), BodyAborted>> + use<>>, Failure> {
        let writer = self.writer.borrow();
        let writer = writer.as_ref().ok_or_else(|| {
            Failure::new(
                "usage",
                "the response has ended: nothing more can be written",
            )
        })?;
        let has_room = writer.write(Bytes::copy_from_slice(chunk)).map_err(gone)?;
        Ok((!has_room).then(|| writer.room()))
    }

    pub fn new(writer: BodyWriter) -> Self {
        let writer = RefCell::new(Some(writer));
        Self { writer }
    }
}

pub fn gone(_: BodyAborted) -> Failure {
    Failure::new(
        "http.gone",
        "the client has gone away before the response was complete",
    )
}
