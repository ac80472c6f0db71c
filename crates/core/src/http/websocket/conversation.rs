use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use hyper::upgrade::OnUpgrade;

use super::deflate::Agreement;
use super::{Message, WebSocketLimits};
use crate::http::body::Broken;

/// Bytes that may wait for the client before the sender has to wait.
const BUFFERED: usize = 64 << 10;
/// Messages that may wait for the handler before no more are read.
const ARRIVED: usize = 16;
/// The connection was lost without a closing handshake (RFC 6455 §7.1.5).
pub(super) const LOST: u16 = 1006;

/// A conversation, as its handler sees it. Clones are the same one.
#[derive(Clone)]
pub struct WebSocket {
    state: Rc<RefCell<State>>,
    pub(super) limits: Rc<WebSocketLimits>,
    pub(super) agreement: Option<Agreement>,
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
    receivers: Vec<Waker>,
    senders: Vec<Waker>,
    /// The connection's task.
    driver: Option<Waker>,
}

impl WebSocket {
    pub(super) fn new(limits: WebSocketLimits, agreement: Option<Agreement>) -> Self {
        Self {
            state: Rc::default(),
            limits: Rc::new(limits),
            agreement,
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
    pub(in crate::http) fn is_over(&self) -> bool {
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
