//! Messages that arrive, put together from their frames and handed over a read's worth at a time.

use super::super::channel::{ContentKind, PartialContent};
use super::super::codec::frame::{self, Frame};
use super::super::codec::method::Incoming;
use super::super::confirms::Returned;
use super::super::consumer_state::ReceivedDelivery;
use super::super::message::Layout;
use super::super::session::Role;
use super::io_loop::Driver;
use super::violation::{
    COMMAND_INVALID, UNEXPECTED_FRAME, Violation, content_violation, violation,
};

impl Driver {
    pub(super) fn take_content(&mut self, frame: Frame<'_>) -> Result<(), Violation> {
        let number = frame.channel;
        let channel = self.open_channel(number)?;
        if channel.closing {
            return Ok(());
        }
        let Some(partial) = &mut channel.partial else {
            let text = format!("content on channel {number} without its method");
            return Err(violation(UNEXPECTED_FRAME, text));
        };
        let fitted = if frame.kind == frame::HEADER {
            partial.header(frame.payload)
        } else {
            partial.body(frame.payload)
        };
        fitted.map_err(|error| content_violation(number, error))?;
        if partial.is_complete()
            && let Some(partial) = channel.partial.take()
        {
            self.take_message(number, partial)?;
        }
        Ok(())
    }

    fn take_message(&mut self, number: u16, partial: PartialContent) -> Result<(), Violation> {
        let kind = partial.kind;
        let (raw, layout) = partial.finish();
        match kind {
            ContentKind::Deliver {
                tag, redelivered, ..
            } => {
                let channel = self.open_channel(number)?;
                let first = !channel.has_batch();
                channel.deliveries.push(ReceivedDelivery {
                    tag,
                    redelivered,
                    raw,
                    layout,
                });
                if first {
                    self.batched.push(number);
                }
            }
            ContentKind::Return => {
                // Confirms of earlier messages first: what is returned must be found among the unconfirmed.
                self.hand_over(number)?;
                self.take_returned(number, &raw, &layout)?;
            }
        }
        Ok(())
    }

    fn take_returned(&mut self, number: u16, raw: &[u8], layout: &Layout) -> Result<(), Violation> {
        let channel = self.open_channel(number)?;
        let Role::Publisher(publisher) = &channel.role else {
            return Ok(());
        };
        let part = |range: &std::ops::Range<u32>| &raw[range.start as usize..range.end as usize];
        if let Ok(Incoming::Return {
            code,
            text,
            exchange,
            routing_key,
        }) = Incoming::decode(raw)
        {
            publisher.returned(&Returned {
                code,
                text: &text,
                exchange: &exchange,
                routing_key: &routing_key,
                properties: part(&layout.properties),
                body: part(&layout.body),
            });
        }
        Ok(())
    }

    pub(super) fn hand_over_all(&mut self) -> Result<(), Violation> {
        let mut batched = std::mem::take(&mut self.batched);
        let result = batched
            .drain(..)
            .try_for_each(|number| self.hand_over(number));
        self.batched = batched;
        result
    }

    pub(super) fn hand_over(&mut self, number: u16) -> Result<(), Violation> {
        let Some(Some(channel)) = self.channels.get_mut(usize::from(number)) else {
            return Ok(());
        };
        let in_order = match &channel.role {
            Role::Consumer(consumer) if !channel.deliveries.is_empty() => {
                consumer.deliver(&mut channel.deliveries)
            }
            Role::Publisher(publisher) if !channel.confirmations.is_empty() => {
                let known = publisher.settle(&channel.confirmations);
                channel.confirmations.clear();
                self.shared.write_buffer.mark_urgent();
                known
            }
            _ => true,
        };
        if in_order {
            Ok(())
        } else {
            let text = format!(
                "a delivery or confirm out of order, or more deliveries than the prefetch, on channel {number}"
            );
            Err(violation(COMMAND_INVALID, text))
        }
    }
}
