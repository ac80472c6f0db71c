use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;

use hyper::upgrade::OnUpgrade;
use tokio::sync::Notify;

use super::deflate::Agreement;
use super::{Message, WebSocketLimits};
use crate::http::body_aborted::BodyAborted;
use crate::wait;

/// Bytes of messages that are buffered before the sender has to wait.
const BUFFERED: usize = 64 << 10;
/// Messages that may wait for the handler before the driver stops reading.
const MAX_BACKLOG: usize = 16;
/// The connection was lost without a closing handshake (RFC 6455 §7.1.5).
pub(super) const LOST: u16 = 1006;
pub(in crate::http) const STOPPING: &str = "the server is stopping";

/// A WebSocket, as its handler sees it. Clones are the same WebSocket.
#[derive(Clone)]
pub struct WebSocket {
    shared: Rc<Shared>,
    pub(super) limits: Rc<WebSocketLimits>,
    pub(super) agreement: Option<Agreement>,
}

#[derive(Default)]
struct Shared {
    state: RefCell<State>,
    /// Notified when a message has arrived or none will.
    arrived: Notify,
    /// Notified when the buffer of outgoing messages has room or will not be read any more.
    room: Notify,
}

/// A WebSocket on its way to its connection. If it never gets there, its drop ends the WebSocket, so that the handler does not wait
/// forever.
pub struct Upgrade {
    pub(crate) socket: WebSocket,
    /// The stream of HTTP/2 that carries it; `None` if the connection does.
    pub(crate) stream: Option<OnUpgrade>,
}

impl Drop for Upgrade {
    fn drop(&mut self) {
        self.socket.end(LOST, "the connection was lost");
    }
}

#[derive(Default)]
struct State {
    arrived: VecDeque<Message>,
    received_bytes: usize,
    outgoing: VecDeque<Message>,
    outgoing_bytes: usize,
    /// Code and reason of the close; the first one stays.
    close: Option<(u16, String)>,
    /// The connection has ended.
    is_closed: bool,
    /// The driver's waker.
    driver: Option<Waker>,
}

impl WebSocket {
    pub(super) fn new(limits: WebSocketLimits, agreement: Option<Agreement>) -> Self {
        Self {
            shared: Rc::default(),
            limits: Rc::new(limits),
            agreement,
        }
    }

    /// The next message; `None` once the WebSocket has ended and all messages were taken.
    pub fn receive(&self) -> impl Future<Output = Option<Message>> + use<> {
        let shared = Rc::clone(&self.shared);
        async move { wait::until(&shared.arrived, || shared.state.borrow_mut().take()).await }
    }

    /// Buffers the message in any case. Returns false if the caller should await [`room`](Self::room) before the next one.
    ///
    /// # Errors
    /// [`BodyAborted`]: the WebSocket has ended.
    pub fn send(&self, message: Message) -> Result<bool, BodyAborted> {
        let mut state = self.shared.state.borrow_mut();
        if state.is_closed || state.close.is_some() {
            return Err(BodyAborted);
        }
        state.outgoing_bytes += message.as_bytes().len();
        state.outgoing.push_back(message);
        wake(state.driver.take());
        Ok(state.outgoing_bytes < BUFFERED)
    }

    /// Completes when the buffer has room, or the WebSocket has ended.
    pub fn room(&self) -> impl Future<Output = Result<(), BodyAborted>> + use<> {
        let shared = Rc::clone(&self.shared);
        async move { wait::until(&shared.room, || shared.state.borrow().room()).await }
    }

    /// Sends buffered messages, then a Close frame. Only the first call counts.
    pub fn close(&self, code: u16, reason: &str) {
        let mut state = self.shared.state.borrow_mut();
        state.end(code, reason);
        wake(state.driver.take());
        drop(state);
        self.shared.arrived.notify_waiters();
    }

    /// Code and reason of the close, once there is one.
    pub fn closed(&self) -> Option<(u16, String)> {
        self.shared.state.borrow().close.clone()
    }

    /// Whether the connection has ended.
    pub(in crate::http) fn is_over(&self) -> bool {
        self.shared.state.borrow().is_closed
    }

    pub(super) fn wait(&self, driver: &Waker) {
        self.shared.state.borrow_mut().driver = Some(driver.clone());
    }

    /// Whether the handler's backlog has room for more messages.
    pub(super) fn has_room(&self) -> bool {
        let state = self.shared.state.borrow();
        state.close.is_some()
            || state.arrived.len() < MAX_BACKLOG && state.received_bytes < self.limits.message_bytes
    }

    /// Queues a message of the client. After a close it is discarded.
    pub(super) fn push_received(&self, message: Message) {
        let mut state = self.shared.state.borrow_mut();
        if state.close.is_none() {
            state.received_bytes += message.as_bytes().len();
            state.arrived.push_back(message);
            drop(state);
            self.shared.arrived.notify_waiters();
        }
    }

    /// The next message for the client.
    pub(super) fn next_outgoing(&self) -> Option<Message> {
        let mut state = self.shared.state.borrow_mut();
        let message = state.outgoing.pop_front()?;
        state.outgoing_bytes -= message.as_bytes().len();
        if state.outgoing_bytes < BUFFERED {
            drop(state);
            self.shared.room.notify_waiters();
        }
        Some(message)
    }

    /// Ends the WebSocket, with or without a closing handshake.
    pub(super) fn end(&self, code: u16, reason: &str) {
        let mut state = self.shared.state.borrow_mut();
        state.end(code, reason);
        state.is_closed = true;
        state.outgoing.clear();
        drop(state);
        self.shared.arrived.notify_waiters();
        self.shared.room.notify_waiters();
    }
}

impl State {
    fn end(&mut self, code: u16, reason: &str) {
        if self.close.is_none() {
            self.close = Some((code, reason.to_owned()));
        }
    }

    /// The next message; `Some(None)` when there are none and will be none.
    fn take(&mut self) -> Option<Option<Message>> {
        if let Some(message) = self.arrived.pop_front() {
            self.received_bytes -= message.as_bytes().len();
            wake(self.driver.take());
            return Some(Some(message));
        }
        (self.is_closed || self.close.is_some()).then_some(None)
    }

    fn room(&self) -> Option<Result<(), BodyAborted>> {
        if self.is_closed {
            return Some(Err(BodyAborted));
        }
        (self.outgoing_bytes < BUFFERED).then_some(Ok(()))
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Wake};

    use super::*;

    struct Unused;

    impl Wake for Unused {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn waits_that_time_out_leave_no_waker() {
        let limits = WebSocketLimits {
            message_bytes: 1 << 20,
            ping_interval: None,
            compress: false,
        };
        let socket = WebSocket::new(limits, None);
        let full = Message::binary(vec![0; BUFFERED].into());
        assert!(!socket.send(full).unwrap());
        let task = Arc::new(Unused);
        for _ in 0..100 {
            let waker = Waker::from(Arc::clone(&task));
            let mut context = Context::from_waker(&waker);
            assert!(pin!(socket.receive()).poll(&mut context).is_pending());
            assert!(pin!(socket.room()).poll(&mut context).is_pending());
        }
        assert_eq!(Arc::strong_count(&task), 1);
    }
}
