//! WebSocket conversations (RFC 6455): what both ends have said and not taken yet. Frames, fragments, masks and UTF-8 are
//! tungstenite's; the connection's own task moves them (see `conversation.rs`).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Response, StatusCode, Version};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::body::{Body, Broken};

/// Bytes that may wait for the client before the sender has to wait.
const BUFFERED: usize = 64 << 10;
/// Messages that may wait for the handler before no more are read.
const ARRIVED: usize = 16;
/// A length of a Sec-WebSocket-Key: 16 bytes in base64 (RFC 6455 §4.1).
const KEY: usize = 24;

/// The connection was lost without a closing handshake (RFC 6455 §7.1.5).
pub(super) const LOST: u16 = 1006;

#[derive(Debug, Clone)]
pub struct WebSocketLimits {
    /// A longer message ends the conversation with 1009.
    pub message_bytes: usize,
    /// How often the client is pinged; one that has sent nothing at all by the ping after is gone. `None` is never.
    pub ping_interval: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    Text(Utf8Bytes),
    Binary(Bytes),
}

impl Message {
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_str().as_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }

    pub fn is_binary(&self) -> bool {
        matches!(self, Self::Binary(_))
    }
}

/// Why a request cannot become a conversation.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum UpgradeError {
    #[error("a WebSocket begins with GET over HTTP/1.1, this was {method} over {version:?}")]
    Request { method: Method, version: Version },
    #[error("this address speaks WebSocket only: the request asks for no upgrade to it")]
    NotAsked,
    #[error("the version of WebSocket must be 13, the client wants \"{asked}\"")]
    Version { asked: String },
    #[error("the Sec-WebSocket-Key is missing or is not 16 bytes in base64")]
    Key,
    #[error("\"{name}\" is no name of a subprotocol")]
    Subprotocol { name: String },
}

impl UpgradeError {
    /// What the client is answered.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::NotAsked | Self::Version { .. } => StatusCode::UPGRADE_REQUIRED,
            Self::Subprotocol { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Request { .. } | Self::Key => StatusCode::BAD_REQUEST,
        }
    }
}

/// The answer that turns the connection of a request into a conversation, and the handler's end of it.
pub(super) fn accept(
    head: &Parts,
    subprotocol: Option<&str>,
    limits: WebSocketLimits,
) -> Result<(WebSocket, Response<Body>), UpgradeError> {
    let key = key(head)?;
    let socket = WebSocket::new(limits);
    let mut response = Response::new(Body::Conversation(Upgrade(socket.clone())));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    let accepted = HeaderValue::try_from(derive_accept_key(key)).map_err(|_| UpgradeError::Key)?;
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accepted);
    if let Some(name) = subprotocol {
        let value = HeaderValue::from_str(name).map_err(|_| {
            let name = name.to_owned();
            UpgradeError::Subprotocol { name }
        })?;
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, value);
    }
    Ok((socket, response))
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
    let version = headers.get(header::SEC_WEBSOCKET_VERSION);
    let version = version.map_or(&b""[..], HeaderValue::as_bytes);
    if version != b"13" {
        let asked = String::from_utf8_lossy(version).into_owned();
        return Err(UpgradeError::Version { asked });
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY);
    key.map(HeaderValue::as_bytes)
        .filter(|key| is_key(key))
        .ok_or(UpgradeError::Key)
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

/// A conversation, as its handler sees it. Clones are the same one.
#[derive(Clone)]
pub struct WebSocket {
    state: Rc<RefCell<State>>,
    pub(super) limits: Rc<WebSocketLimits>,
}

/// A conversation on its way to its connection: whatever comes between, nobody waits for it in vain.
pub struct Upgrade(pub(super) WebSocket);

impl Drop for Upgrade {
    fn drop(&mut self) {
        self.0.end(LOST, "the connection was lost");
    }
}

#[derive(Default)]
struct State {
    arrived: VecDeque<Message>,
    arrived_bytes: usize,
    leaving: VecDeque<Message>,
    leaving_bytes: usize,
    /// How it ended, or is asked to end: the first reason stays.
    close: Option<(u16, String)>,
    /// Nothing can be sent any more.
    is_closed: bool,
    receivers: Vec<Waker>,
    senders: Vec<Waker>,
    /// The connection's task.
    driver: Option<Waker>,
}

impl WebSocket {
    fn new(limits: WebSocketLimits) -> Self {
        Self {
            state: Rc::default(),
            limits: Rc::new(limits),
        }
    }

    /// The next message; none once the conversation has ended and everything that had arrived was taken.
    pub fn receive(&self) -> impl Future<Output = Option<Message>> + use<> {
        let state = Rc::clone(&self.state);
        poll_fn(move |context| {
            let mut state = state.borrow_mut();
            if let Some(message) = state.arrived.pop_front() {
                state.arrived_bytes -= message.as_bytes().len();
                wake(state.driver.take());
                return Poll::Ready(Some(message));
            }
            if state.is_closed || state.close.is_some() {
                return Poll::Ready(None);
            }
            state.receivers.push(context.waker().clone());
            Poll::Pending
        })
    }

    /// Takes the message in any case. False: wait for [`room`](Self::room) before the next one.
    ///
    /// # Errors
    /// [`Broken`]: the conversation has ended.
    pub fn send(&self, message: Message) -> Result<bool, Broken> {
        let mut state = self.state.borrow_mut();
        if state.is_closed || state.close.is_some() {
            return Err(Broken);
        }
        state.leaving_bytes += message.as_bytes().len();
        state.leaving.push_back(message);
        wake(state.driver.take());
        Ok(state.leaving_bytes < BUFFERED)
    }

    /// Ends when less waits than the buffer takes, or the conversation has ended.
    pub fn room(&self) -> impl Future<Output = Result<(), Broken>> + use<> {
        let state = Rc::clone(&self.state);
        poll_fn(move |context| {
            let mut state = state.borrow_mut();
            if state.is_closed {
                return Poll::Ready(Err(Broken));
            }
            if state.leaving_bytes < BUFFERED {
                return Poll::Ready(Ok(()));
            }
            state.senders.push(context.waker().clone());
            Poll::Pending
        })
    }

    /// Sends what is waiting, then that the conversation ends, and why. Only the first time counts.
    pub fn close(&self, code: u16, reason: &str) {
        let mut state = self.state.borrow_mut();
        state.end(code, reason);
        wake(state.driver.take());
    }

    /// Code and reason of the end, once there is one.
    pub fn closed(&self) -> Option<(u16, String)> {
        self.state.borrow().close.clone()
    }

    /// Nothing more comes or goes.
    pub(super) fn is_over(&self) -> bool {
        self.state.borrow().is_closed
    }

    pub(super) fn wait(&self, driver: &Waker) {
        self.state.borrow_mut().driver = Some(driver.clone());
    }

    /// Whether the handler has taken enough for more to be read.
    pub(super) fn has_room(&self) -> bool {
        let state = self.state.borrow();
        state.close.is_some()
            || state.arrived.len() < ARRIVED && state.arrived_bytes < self.limits.message_bytes
    }

    /// From the client. What comes after the end was asked for is not looked at.
    pub(super) fn arrive(&self, message: Message) {
        let mut state = self.state.borrow_mut();
        if state.close.is_none() {
            state.arrived_bytes += message.as_bytes().len();
            state.arrived.push_back(message);
            state.receivers.drain(..).for_each(Waker::wake);
        }
    }

    /// For the client.
    pub(super) fn leave(&self) -> Option<Message> {
        let mut state = self.state.borrow_mut();
        let message = state.leaving.pop_front()?;
        state.leaving_bytes -= message.as_bytes().len();
        if state.leaving_bytes < BUFFERED {
            state.senders.drain(..).for_each(Waker::wake);
        }
        Some(message)
    }

    /// It has ended, by the closing handshake or without.
    pub(super) fn end(&self, code: u16, reason: &str) {
        let mut state = self.state.borrow_mut();
        state.end(code, reason);
        state.is_closed = true;
        state.leaving.clear();
        state.senders.drain(..).for_each(Waker::wake);
    }
}

impl State {
    fn end(&mut self, code: u16, reason: &str) {
        if self.close.is_none() {
            self.close = Some((code, reason.to_owned()));
        }
        self.receivers.drain(..).for_each(Waker::wake);
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
