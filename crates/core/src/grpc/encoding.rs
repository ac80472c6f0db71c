use std::io::{self, Read, Write as _};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};

use super::status::{Code, Status};

/// The value of `grpc-accept-encoding`.
pub(super) const ACCEPTED: &str = "identity,gzip,deflate,zstd";
/// Base-2 logarithm of the largest zstd window: a larger one would take memory that no message limit bounds.
const ZSTD_WINDOW: u32 = 23;

/// A message encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Gzip,
    /// With the zlib wrapper (RFC 1950), as all implementations use it.
    Deflate,
    Zstd,
}

impl Encoding {
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "gzip" => Some(Self::Gzip),
            "deflate" => Some(Self::Deflate),
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Zstd => "zstd",
        }
    }

    pub(super) fn compress(self, message: &[u8]) -> io::Result<Vec<u8>> {
        let buffer = Vec::with_capacity(message.len() / 2 + 32);
        match self {
            Self::Gzip => {
                let mut encoder = GzEncoder::new(buffer, Compression::fast());
                encoder.write_all(message)?;
                encoder.finish()
            }
            Self::Deflate => {
                let mut encoder = ZlibEncoder::new(buffer, Compression::fast());
                encoder.write_all(message)?;
                encoder.finish()
            }
            Self::Zstd => zstd::bulk::compress(message, 1),
        }
    }

    /// Fails as soon as the output exceeds `limit` bytes.
    pub(super) fn decompress(self, message: &[u8], limit: usize) -> Result<Bytes, Status> {
        let read = match self {
            Self::Gzip => read(MultiGzDecoder::new(message), limit),
            Self::Deflate => read(ZlibDecoder::new(message), limit),
            Self::Zstd => zstd::stream::read::Decoder::new(message).and_then(|mut decoder| {
                decoder.window_log_max(ZSTD_WINDOW)?;
                read(decoder, limit)
            }),
        };
        let bytes = read.map_err(|error| {
            Status::internal(format!(
                "a message is not valid {} data: {error}",
                self.name()
            ))
        })?;
        match bytes.len() > limit {
            true => Err(Status::new(
                Code::RESOURCE_EXHAUSTED,
                format!(
                    "a message has more than {limit} bytes, the limit, once it is decompressed"
                ),
            )),
            false => Ok(bytes.into()),
        }
    }
}

fn read(decoder: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    decoder.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Encoding; 3] = [Encoding::Gzip, Encoding::Deflate, Encoding::Zstd];

    #[test]
    fn compressed_messages_decompress_to_the_original() {
        for encoding in ALL {
            let message = b"weft ".repeat(1000);
            let small = encoding.compress(&message).unwrap();
            assert!(small.len() < 200);
            assert_eq!(encoding.decompress(&small, 5000).unwrap(), message);
        }
    }

    #[test]
    fn a_bomb_is_refused_at_the_limit() {
        for encoding in ALL {
            let bomb = encoding.compress(&vec![0; 50 << 20]).unwrap();
            let status = encoding.decompress(&bomb, 1 << 20).unwrap_err();
            assert_eq!(status.code, Code::RESOURCE_EXHAUSTED);
        }
    }

    #[test]
    fn data_that_is_not_compressed_is_refused() {
        for encoding in ALL {
            let status = encoding.decompress(b"plain text", 100).unwrap_err();
            assert_eq!(status.code, Code::INTERNAL);
        }
    }
}
