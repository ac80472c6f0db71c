//! `Weft\Native\HttpEncoder`

use std::cell::RefCell;

use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, Zval};

use weft_core::blocking::{self, Purpose};
use weft_core::http::{AcceptEncoding, ContentEncoding, Encoder, is_compressible};

use super::long;
use crate::amqp_table::binary;
use crate::array::values;
use crate::failure::Failure;
use crate::outcome::Payload;
use crate::runtime::start;

/// Larger bodies are compressed by a thread of their own: here they would keep everything else waiting for a millisecond.
const LARGE: usize = 64 << 10;

/// Compresses a body chunk by chunk.
#[php_class]
#[php(name = "Weft\\Native\\HttpEncoder")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct HttpEncoder {
    /// `None` once it has ended.
    encoder: RefCell<Option<Encoder>>,
}

#[php_impl]
impl HttpEncoder {
    pub fn open(coding: &str) -> PhpResult<Self> {
        let encoder = Encoder::new(named(coding)?).map_err(failure)?;
        let encoder = RefCell::new(Some(encoder));
        Ok(Self { encoder })
    }

    pub fn choose(accept: &Zval, codings: &ZendHashTable) -> PhpResult<Option<&'static str>> {
        let accept = bytes(accept)?;
        let names = values(codings).filter_map(Zval::str);
        let codings = names.map(named).collect::<PhpResult<Vec<_>>>()?;
        let chosen = AcceptEncoding::parse(accept).best_of(codings);
        Ok(chosen.map(ContentEncoding::name))
    }

    pub fn suits(content_type: &Zval) -> PhpResult<bool> {
        let content_type = std::str::from_utf8(bytes(content_type)?);
        Ok(content_type.is_ok_and(is_compressible))
    }

    pub fn compress(coding: &str, body: &Zval) -> PhpResult<Zval> {
        let coding = named(coding)?;
        let body = bytes(body)?;
        if body.len() <= LARGE {
            let coded = Encoder::whole(coding, body).map_err(failure)?;
            return Ok(binary(&coded));
        }
        let body = body.to_owned();
        Ok(long(start(async move {
            let compress = move || Encoder::whole(coding, &body);
            let coded = blocking::run(Purpose::Compression, compress)
                .await
                .flatten();
            let coded = coded.map_err(failure)?;
            Ok(Payload::build(move || Ok(binary(&coded))))
        })?))
    }

    pub fn write(&self, chunk: &Zval) -> PhpResult<Zval> {
        let chunk = bytes(chunk)?;
        let written = match self.encoder.borrow_mut().as_mut() {
            Some(encoder) => encoder.write(chunk).map_err(failure),
            None => Err(ended()),
        };
        Ok(binary(&written?))
    }

    pub fn finish(&self) -> PhpResult<Zval> {
        let encoder = self.encoder.borrow_mut().take();
        let encoder = encoder.ok_or_else(ended)?;
        Ok(binary(&encoder.finish().map_err(failure)?))
    }
}

fn named(coding: &str) -> PhpResult<ContentEncoding> {
    let coding = ContentEncoding::named(coding).ok_or_else(|| {
        let message = format!("there is no coding \"{coding}\": it is gzip, br or zstd");
        Failure::new("usage", message)
    })?;
    Ok(coding)
}

fn bytes(text: &Zval) -> PhpResult<&[u8]> {
    let text = text
        .zend_str()
        .ok_or_else(|| Failure::new("usage", "what compression looks at must be a string"))?;
    Ok(text.as_bytes())
}

fn ended() -> Failure {
    Failure::new(
        "usage",
        "the body has ended: nothing more can be compressed",
    )
}

fn failure(error: std::io::Error) -> Failure {
    Failure::new("runtime", format!("compressing has failed: {error}"))
}
