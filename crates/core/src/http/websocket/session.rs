use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;

use hyper::upgrade::OnUpgrade;
use tokio::sync::Notify;

use super::deflate::Agreement;
use super::{Message, WebSocketLimits};
use crate::http::body::Broken;
use crate::wait;

/// Bytes that may wait for the client before the sender has to wait.
const BUFFERED: usize = 64 << 10;
/// Messages that may wait for the handler before no more are read.
const ARRIVED: usize = 16;
/// The connection was lost without a closing handshake (RFC 6455 §7.1.5).
pub(super) const LOST: u16 = 1006;

/// A conversation, as its handler sees it. Clones are the same one.
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

/// A conversation on its way to its connection: whatever comes between, nobody waits for it in vain.
pub struct Upgrade {
    pub(crate) socket: WebSocket,
    /// The stream of HTTP/2 that carries it; otherwise the connection does.
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
    arrived_bytes: usize,
    leaving: VecDeque<Message>,
    leaving_bytes: usize,
    /// How it ended, or is asked to end: the first reason stays.
    close: Option<(u16, String)>,
    /// Nothing can be sent any more.
    is_closed: bool,
    /// The connection's task.
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

    /// The next message; none once the conversation has ended and everything that had arrived was taken.
    pub fn receive(&self) -> impl Future<Output = Option<Message>> + use<> {
        let shared = Rc::clone(&self.shared);
        async move { wait::until(&shared.arrived, || shared.state.borrow_mut().take()).await }
    }

    /// Takes the message in any case. False: wait for [`room`](Self::room) before the next one.
    ///
    /// # Errors
    /// [`Broken`]: the conversation has ended.
    pub fn send(&self, message: Message) -> Result<bool, Broken> {
        let mut state = self.shared.state.borrow_mut();
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
        let shared = Rc::clone(&self.shared);
        async move { wait::until(&shared.room, || shared.state.borrow().room()).await }
    }

    /// Sends what is waiting, then that the conversation ends, and why. Only the first time counts.
    pub fn close(&self, code: u16, reason: &str) {
        let mut state = self.shared.state.borrow_mut();
        state.end(code, reason);
        wake(state.driver.take());
        drop(state);
        self.shared.arrived.notify_waiters();
    }

    /// Code and reason of the end, once there is one.
    pub fn closed(&self) -> Option<(u16, String)> {
        self.shared.state.borrow().close.clone()
    }

    /// Nothing more comes or goes.
    pub(in crate::http) fn is_over(&self) -> bool {
        self.shared.state.borrow().is_closed
    }

    pub(super) fn wait(&self, driver: &Waker) {
        self.shared.state.borrow_mut().driver = Some(driver.clone());
    }

    /// Whether the handler has taken enough for more to be read.
    pub(super) fn has_room(&self) -> bool {
        let state = self.shared.state.borrow();
        state.close.is_some()
            || state.arrived.len() < ARRIVED && state.arrived_bytes < self.limits.message_bytes
    }

    /// From the client. What comes after the end was asked for is not looked at.
    pub(super) fn arrive(&self, message: Message) {
        let mut state = self.shared.state.borrow_mut();
        if state.close.is_none() {
            state.arrived_bytes += message.as_bytes().len();
            state.arrived.push_back(message);
            drop(state);
            self.shared.arrived.notify_waiters();
        }
    }

    /// For the client.
    pub(super) fn leave(&self) -> Option<Message> {
        let mut state = self.shared.state.borrow_mut();
        let message = state.leaving.pop_front()?;
        state.leaving_bytes -= message.as_bytes().len();
        if state.leaving_bytes < BUFFERED {
            drop(state);
            self.shared.room.notify_waiters();
        }
        Some(message)
    }

    /// It has ended, by the closing handshake or without.
    pub(super) fn end(&self, code: u16, reason: &str) {
        let mut state = self.shared.state.borrow_mut();
        state.end(code, reason);
        state.is_closed = true;
        state.leaving.clear();
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
            self.arrived_bytes -= message.as_bytes().len();
            wake(self.driver.take());
            return Some(Some(message));
        }
        (self.is_closed || self.close.is_some()).then_some(None)
    }

    fn room(&self) -> Option<Result<(), Broken>> {
        if self.is_closed {
            return Some(Err(Broken));
        }
        (self.leaving_bytes < BUFFERED).then_some(Ok(()))
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
