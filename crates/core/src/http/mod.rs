//! An HTTP/1.1 and HTTP/2 server on the reactor's thread.
//!
//! [`Server`] accepts connections and parses requests as background tasks; each request becomes a [`Call`] in its ready
//! queue. Whoever runs the handlers asks for [`Server::next`], takes the calls and answers each with [`Call::respond`].
//! Requests of another protocol on the same connections, such as gRPC, go to a [`Service`] instead.

mod accept;
mod admission;
mod body;
mod boundary;
mod call;
mod coding;
mod compression;
mod conditional;
mod connection;
mod date;
mod ebb;
mod file;
mod file_body;
mod floods;
mod folder;
mod handling;
mod limits;
mod linger;
mod media_type;
mod multipart;
mod part_head;
mod pings;
mod range;
mod refusal;
mod refusals;
mod registry;
mod request_body;
mod sending;
mod serve;
mod server;
mod service;
mod shared;
mod socket;
mod sweep;
mod tally;
mod upload;
mod websocket;

pub use body::{Body, BodyWriter, Broken};
pub use call::Call;
pub use coding::{Coding, Offer};
pub use compression::Encoder;
pub use connection::Peer;
pub use file::{FileError, SendableFile};
pub use folder::{Folder, Found};
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
pub use tally::Tally;
pub use upload::{Field, Upload, UploadError};
pub use websocket::{Message, Upgrade, UpgradeError, WebSocket, WebSocketLimits};
