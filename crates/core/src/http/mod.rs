//! An HTTP/1.1 and HTTP/2 server on the reactor's thread.
//!
//! [`Server`] accepts connections and parses requests as background tasks; each request becomes a [`Call`] in its ready
//! queue. Whoever runs the handlers asks for [`Server::next`], takes the calls and answers each with [`Call::respond`].
//! Requests of another protocol on the same connections, such as gRPC, go to a [`Service`] instead.

mod accept;
mod admission;
mod body;
mod call;
mod call_stats;
mod compression;
mod conditional;
mod connection;
mod content_encoding;
mod date;
mod dispatch;
mod error_response;
mod file;
mod file_body;
mod floods;
mod http1_framing;
mod keepalive;
mod limits;
mod lingering_close;
mod media_type;
mod memory_trim;
mod multipart;
mod part_headers;
mod range;
mod refusals;
mod registry;
mod request_body;
mod serve;
mod server;
mod service;
mod shared;
mod socket;
mod static_dir;
mod timeouts;
mod tracked_body;
mod upload;
mod websocket;

pub use body::{Body, BodyWriter, Broken};
pub use call::Call;
pub use call_stats::CallStats;
pub use compression::Encoder;
pub use connection::Peer;
pub use content_encoding::{AcceptEncoding, ContentEncoding};
pub use file::{FileError, SendableFile};
/// The types of the `http` crate that its users need.
pub use hyper::{HeaderMap, Request, Response, StatusCode, Version, body::Incoming, header};
pub use limits::Limits;
pub use media_type::{is_compressible, media_type};
pub use multipart::{MultipartError, MultipartLimits};
pub use refusals::Notice;
pub use registry::Id;
pub(crate) use registry::Registry;
pub use request_body::BodyError;
pub use server::Server;
pub use service::{Service, ServiceFuture};
pub use shared::Event;
pub use static_dir::{Found, StaticDir};
pub use upload::{Field, Upload, UploadError};
pub use websocket::{Message, Upgrade, UpgradeError, WebSocket, WebSocketLimits};
