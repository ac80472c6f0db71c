//! The opening handshake (RFC 6455 §4, RFC 8441).

use base64::prelude::{BASE64_STANDARD, Engine as _};
use hyper::ext::Protocol;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Response, StatusCode, Version};
use sha1::{Digest as _, Sha1};

use super::deflate::Agreement;
use super::{Upgrade, WebSocket, WebSocketLimits};
use crate::http::body::Body;

/// A length of a Sec-WebSocket-Key: 16 bytes in base64 (RFC 6455 §4.1).
const KEY: usize = 24;
const MAGIC: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Why a request cannot become a WebSocket.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum UpgradeError {
    #[error(
        "a WebSocket begins with GET over HTTP/1.1 or CONNECT over HTTP/2, this was {method} over {version:?}"
    )]
    Request { method: Method, version: Version },
    #[error("this address speaks WebSocket only: the request asks for no upgrade to it")]
    NotAsked,
    #[error("the version of WebSocket must be 13, the client wants \"{asked}\"")]
    Version { asked: String },
    #[error("the Sec-WebSocket-Key is missing or is not 16 bytes in base64")]
    Key,
    #[error("\"{name}\" is not a name of a subprotocol")]
    Subprotocol { name: String },
}

impl UpgradeError {
    /// The status of the response.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::NotAsked | Self::Version { .. } => StatusCode::UPGRADE_REQUIRED,
            Self::Subprotocol { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Request { .. } | Self::Key => StatusCode::BAD_REQUEST,
        }
    }
}

/// The response that turns a connection, or a stream of HTTP/2, into a WebSocket, and the WebSocket for the handler.
pub(crate) fn accept(
    head: &Parts,
    subprotocol: Option<&str>,
    limits: WebSocketLimits,
) -> Result<(WebSocket, Response<Body>), UpgradeError> {
    let stream = is_stream(head)
        .then(|| head.extensions.get().cloned())
        .flatten();
    let key = match &stream {
        Some(_) => {
            version(&head.headers)?;
            None
        }
        None => Some(key(head)?),
    };
    let agreement = limits
        .compress
        .then(|| Agreement::of(&head.headers))
        .flatten();
    let (agreement, extension) = agreement.unzip();
    let socket = WebSocket::new(limits, agreement);
    let upgrade = Upgrade {
        socket: socket.clone(),
        stream,
    };
    let mut response = Response::new(Body::WebSocket(upgrade));
    let headers = response.headers_mut();
    if let Some(extension) = extension {
        headers.insert(header::SEC_WEBSOCKET_EXTENSIONS, extension);
    }
    if let Some(name) = subprotocol {
        let value = HeaderValue::from_str(name).map_err(|_| {
            let name = name.to_owned();
            UpgradeError::Subprotocol { name }
        })?;
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, value);
    }
    if let Some(key) = key {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, answer_to(key)?);
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    }
    Ok((socket, response))
}

/// Whether a request is a WebSocket handshake over HTTP/2 (RFC 8441 §4).
pub(crate) fn is_stream(head: &Parts) -> bool {
    let protocol: Option<&Protocol> = head.extensions.get();
    head.method == Method::CONNECT
        && protocol.is_some_and(|protocol| protocol.as_str() == "websocket")
}

/// RFC 6455 §4.2.2
fn answer_to(key: &[u8]) -> Result<HeaderValue, UpgradeError> {
    let mut hash = Sha1::new();
    hash.update(key);
    hash.update(MAGIC);
    let answer = BASE64_STANDARD.encode(hash.finalize());
    HeaderValue::try_from(answer).map_err(|_| UpgradeError::Key)
}

fn key(head: &Parts) -> Result<&[u8], UpgradeError> {
    let headers = &head.headers;
    if head.method != Method::GET || head.version != Version::HTTP_11 {
        return Err(UpgradeError::Request {
            method: head.method.clone(),
            version: head.version,
        });
    }
    if !has_token(headers, &header::CONNECTION, "upgrade")
        || !has_token(headers, &header::UPGRADE, "websocket")
    {
        return Err(UpgradeError::NotAsked);
    }
    version(headers)?;
    let key = headers.get(header::SEC_WEBSOCKET_KEY);
    key.map(HeaderValue::as_bytes)
        .filter(|key| is_key(key))
        .ok_or(UpgradeError::Key)
}

fn version(headers: &HeaderMap) -> Result<(), UpgradeError> {
    let version = headers.get(header::SEC_WEBSOCKET_VERSION);
    let version = version.map_or(&b""[..], HeaderValue::as_bytes);
    match version {
        b"13" => Ok(()),
        version => Err(UpgradeError::Version {
            asked: String::from_utf8_lossy(version).into_owned(),
        }),
    }
}

fn is_key(key: &[u8]) -> bool {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    key.len() == KEY && key.ends_with(b"==") && key[..KEY - 2].iter().all(is_base64)
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|one| one.trim().eq_ignore_ascii_case(token))
}
