//! Compression of response bodies.

use std::io::{self, Write as _};

use brotli::CompressorWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use zstd::stream::write::Encoder as ZstdEncoder;

use super::content_encoding::ContentEncoding;

/// Levels at which compressing takes about as long as sending the saved bytes would, at some tens of milliseconds a megabyte.
const GZIP_LEVEL: u32 = 5;
const BROTLI_QUALITY: u32 = 4;
const ZSTD_LEVEL: i32 = 3;
/// Base-2 logarithm of the window, 512 KiB: both sides keep it in memory for as long as a stream lasts.
const WINDOW: u32 = 19;
const BROTLI_BUFFER: usize = 4096;

/// Compresses one body, whole or chunk by chunk.
pub struct Encoder {
    inner: Inner,
}

enum Inner {
    Gzip(GzEncoder<Vec<u8>>),
    Brotli(Box<CompressorWriter<Vec<u8>>>),
    Zstd(ZstdEncoder<'static, Vec<u8>>),
}

impl Encoder {
    /// # Errors
    /// Out of memory.
    pub fn new(coding: ContentEncoding) -> io::Result<Self> {
        let out = Vec::new();
        let inner = match coding {
            ContentEncoding::Gzip => Inner::Gzip(GzEncoder::new(out, Compression::new(GZIP_LEVEL))),
            ContentEncoding::Brotli => {
                let writer = CompressorWriter::new(out, BROTLI_BUFFER, BROTLI_QUALITY, WINDOW);
                Inner::Brotli(Box::new(writer))
            }
            ContentEncoding::Zstd => {
                let mut encoder = ZstdEncoder::new(out, ZSTD_LEVEL)?;
                encoder.window_log(WINDOW)?;
                Inner::Zstd(encoder)
            }
        };
        Ok(Self { inner })
    }

    /// The compressed bytes of a chunk, flushed: with all bytes before them the client can decompress the whole chunk.
    ///
    /// # Errors
    /// Out of memory.
    pub fn write(&mut self, chunk: &[u8]) -> io::Result<Vec<u8>> {
        let out = match &mut self.inner {
            Inner::Gzip(encoder) => {
                encoder.write_all(chunk)?;
                encoder.flush()?;
                encoder.get_mut()
            }
            Inner::Brotli(encoder) => {
                encoder.write_all(chunk)?;
                encoder.flush()?;
                encoder.get_mut()
            }
            Inner::Zstd(encoder) => {
                encoder.write_all(chunk)?;
                encoder.flush()?;
                encoder.get_mut()
            }
        };
        Ok(std::mem::take(out))
    }

    /// The last compressed bytes.
    ///
    /// # Errors
    /// Out of memory.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        match self.inner {
            Inner::Gzip(encoder) => encoder.finish(),
            Inner::Brotli(encoder) => Ok(encoder.into_inner()),
            Inner::Zstd(encoder) => encoder.finish(),
        }
    }

    /// Compresses a whole body.
    ///
    /// # Errors
    /// Out of memory.
    pub fn whole(coding: ContentEncoding, body: &[u8]) -> io::Result<Vec<u8>> {
        let mut encoder = Self::new(coding)?;
        match &mut encoder.inner {
            Inner::Gzip(encoder) => encoder.write_all(body)?,
            Inner::Brotli(encoder) => encoder.write_all(body)?,
            Inner::Zstd(encoder) => {
                encoder.set_pledged_src_size(Some(body.len() as u64))?;
                encoder.write_all(body)?;
            }
        }
        encoder.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::MultiGzDecoder;

    use super::*;

    const ALL: [ContentEncoding; 3] = [
        ContentEncoding::Gzip,
        ContentEncoding::Brotli,
        ContentEncoding::Zstd,
    ];

    /// As much as can be decoded of what is there.
    fn decoded(coding: ContentEncoding, coded: &[u8]) -> Vec<u8> {
        let mut reader: Box<dyn io::Read> = match coding {
            ContentEncoding::Gzip => Box::new(MultiGzDecoder::new(coded)),
            ContentEncoding::Brotli => Box::new(brotli::Decompressor::new(coded, 4096)),
            ContentEncoding::Zstd => Box::new(zstd::stream::read::Decoder::new(coded).unwrap()),
        };
        let mut text = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = reader.read(&mut buffer) {
            text.extend_from_slice(&buffer[..length]);
        }
        text
    }

    #[test]
    fn a_body_is_smaller_and_comes_out_as_it_went_in() {
        let body = b"to be or not to be, ".repeat(5_000);
        for coding in ALL {
            let coded = Encoder::whole(coding, &body).unwrap();
            assert!(coded.len() < body.len() / 50, "{coding:?}: {}", coded.len());
            assert_eq!(decoded(coding, &coded), body, "{coding:?}");
            let nothing = Encoder::whole(coding, b"").unwrap();
            assert_eq!(decoded(coding, &nothing), b"", "{coding:?}");
        }
    }

    #[test]
    fn each_chunk_can_be_read_before_the_next_one_is_written() {
        for coding in ALL {
            let mut encoder = Encoder::new(coding).unwrap();
            let mut sent = Vec::new();
            let mut written = Vec::new();
            for round in 0..20 {
                let chunk = format!("chunk {round} ").repeat(round * 50);
                written.extend_from_slice(chunk.as_bytes());
                sent.extend(encoder.write(chunk.as_bytes()).unwrap());
                assert_eq!(decoded(coding, &sent), written, "{coding:?} {round}");
            }
            sent.extend(encoder.finish().unwrap());
            assert_eq!(decoded(coding, &sent), written, "{coding:?}");
        }
    }
}
