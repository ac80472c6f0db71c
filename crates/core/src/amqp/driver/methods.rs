//! Methods that the broker sends, on the connection and on its channels.

use std::pin::Pin;
use std::task::Context;

use tokio::io::AsyncWrite;

use super::super::channel::{Channel, ContentKind, PartialContent};
use super::super::codec::method::{self, CloseReason, Incoming};
use super::super::confirms::Confirmation;
use super::super::session::Role;
use super::super::status::{Event, Status};
use super::io_loop::{Driver, Ended};
use super::violation::{CHANNEL_ERROR, COMMAND_INVALID, UNEXPECTED_FRAME, Violation, violation};

impl Driver {
    pub(super) fn take_connection_method(
        &mut self,
        incoming: Incoming<'_>,
    ) -> Result<Option<Ended>, Violation> {
        match incoming {
            Incoming::ConnectionClose(reason) => {
                let close_ok = method::bare(0, method::CONNECTION_CLOSE_OK);
                if self.written == self.writing.len() {
                    let mut cx = Context::from_waker(std::task::Waker::noop());
                    let _ = Pin::new(&mut self.stream).poll_write(&mut cx, &close_ok);
                    let _ = Pin::new(&mut self.stream).poll_flush(&mut cx);
                }
                let CloseReason { code, text, .. } = &reason;
                let text = format!("the broker closed the connection: {text} (AMQP {code})");
                self.session.closed_by_broker(reason);
                return Ok(Some(self.lost(text)));
            }
            Incoming::ConnectionCloseOk if self.closing => return Ok(Some(Ended::Closed)),
            Incoming::Blocked { reason } => {
                let reason = reason.into_owned();
                self.blocked = true;
                self.shared.set_status(Status::Blocked {
                    reason: reason.clone(),
                });
                self.shared.events.push(Event::Blocked { reason });
            }
            Incoming::Unblocked => {
                self.unblock_calls();
                self.shared.set_status(Status::Connected);
                self.shared.events.push(Event::Unblocked);
            }
            other => {
                let text = format!("{other:?} on channel 0");
                return Err(violation(COMMAND_INVALID, text));
            }
        }
        Ok(None)
    }

    pub(super) fn open_channel(&mut self, number: u16) -> Result<&mut Channel, Violation> {
        match self.channels.get_mut(usize::from(number)) {
            Some(Some(channel)) => Ok(channel),
            _ => Err(violation(
                CHANNEL_ERROR,
                format!("frame on channel {number}, which is not open"),
            )),
        }
    }

    pub(super) fn take_channel_method(
        &mut self,
        number: u16,
        incoming: Incoming<'_>,
        payload: &[u8],
    ) -> Result<(), Violation> {
        // Both sides may close a channel at once: the second answer then finds nothing.
        if matches!(incoming, Incoming::ChannelCloseOk) {
            self.answer_close(number);
            return Ok(());
        }
        let channel = self.open_channel(number)?;
        if let Incoming::ChannelClose(reason) = incoming {
            self.channel_closed(number, reason);
            return Ok(());
        }
        if channel.closing {
            return Ok(());
        }
        if channel.partial.is_some() {
            let text = format!("a method inside the content on channel {number}");
            return Err(violation(UNEXPECTED_FRAME, text));
        }
        match incoming {
            Incoming::Ack { tag, multiple } => self.take_confirmation(number, tag, multiple, true),
            Incoming::Nack { tag, multiple } => {
                self.take_confirmation(number, tag, multiple, false)
            }
            Incoming::Deliver {
                tag,
                redelivered,
                exchange_at,
            } if matches!(channel.role, Role::Consumer(_)) => {
                let kind = ContentKind::Deliver {
                    tag,
                    redelivered,
                    exchange_at,
                };
                channel.partial = Some(PartialContent::new(kind, payload));
                Ok(())
            }
            Incoming::Return { .. } if matches!(channel.role, Role::Publisher(_)) => {
                channel.partial = Some(PartialContent::new(ContentKind::Return, payload));
                Ok(())
            }
            Incoming::Flow { active } => {
                let flow_ok = method::flow_ok(number, active);
                self.control.extend_from_slice(&flow_ok);
                Ok(())
            }
            Incoming::Cancel {
                no_wait,
                consumer_tag,
            } => {
                if !no_wait {
                    let cancel_ok = method::cancel_ok(number, &consumer_tag);
                    self.control.extend_from_slice(&cancel_ok);
                }
                self.consumer_cancelled(number);
                Ok(())
            }
            Incoming::Reply(method, reply) => self.answer(number, method, reply),
            other => Err(violation(
                COMMAND_INVALID,
                format!("{other:?} on channel {number}"),
            )),
        }
    }

    fn take_confirmation(
        &mut self,
        number: u16,
        tag: u64,
        multiple: bool,
        accepted: bool,
    ) -> Result<(), Violation> {
        let channel = self.open_channel(number)?;
        if !matches!(channel.role, Role::Publisher(_)) {
            let text = format!("a confirm on channel {number}, which does not publish");
            return Err(violation(COMMAND_INVALID, text));
        }
        let first = !channel.has_batch();
        channel.confirmations.push(Confirmation {
            tag,
            multiple,
            accepted,
        });
        if first {
            self.batched.push(number);
        }
        Ok(())
    }
}
