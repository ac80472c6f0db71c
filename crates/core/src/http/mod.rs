//! An HTTP/1.1 and HTTP/2 server on the reactor's thread.
//!
//! [`Server`] accepts connections and parses requests in background tasks. Each request becomes a [`Call`] in the ready queue. The
//! code that runs the handlers awaits [`Server::next`], takes calls with [`Server::take`] and answers each with [`Call::respond`].
//! Requests of another protocol on the same connections, such as gRPC, go to a [`Service`] instead.

mod accept;
mod body;
mod body_aborted;
mod call;
mod call_stats;
mod clock;
mod compression;
mod conditional;
mod connection;
mod content_encoding;
mod context;
mod date;
mod direct;
mod dispatch;
mod error_response;
mod file;
mod file_body;
mod floods;
mod forwarded;
mod http1_framing;
mod keepalive;
mod limits;
mod lingering_close;
mod media_type;
mod memory_trim;
mod multipart;
mod part_headers;
mod peer;
mod proxy_protocol;
mod range;
mod refusal;
mod request_body;
mod request_head;
mod response_head;
mod response_writer;
mod serve;
mod server;
mod service;
mod shared;
mod socket;
mod static_dir;
#[cfg(test)]
mod tests;
mod timeouts;
mod tracked_body;
mod upload;
mod websocket;

pub use body::{Body, BodyWriter};
pub use body_aborted::BodyAborted;
pub use call::Call;
pub use call_stats::CallStats;
pub use compression::Encoder;
pub use content_encoding::{AcceptEncoding, ContentEncoding};
pub use file::{FileError, SendableFile};
pub use forwarded::{AddressRange, Client, ForwardedFields, TrustedProxies};
/// Types of the `http` crate that appear in this API.
pub use hyper::{HeaderMap, Request, Response, StatusCode, Version, body::Incoming, header};
pub use limits::Limits;
pub use media_type::{is_compressible, media_type};
pub use multipart::MultipartLimits;
pub use part_headers::MultipartError;
pub use peer::Peer;
pub use refusal::RefusalReason;
pub use request_body::BodyError;
pub use response_head::EncodedFields;
pub use server::{Event, Server};
pub use service::{Service, ServiceFuture};
pub use static_dir::{Found, StaticDir};
pub use upload::{Field, Upload, UploadError};
pub use websocket::{Message, Upgrade, UpgradeError, WebSocket, WebSocketLimits};

pub use crate::server::{Id, RefusalReport};
