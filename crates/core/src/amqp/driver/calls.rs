//! Calls of this side, their answers, and channels that open and close.

use std::sync::Arc;

use super::super::channel::{Call, Channel};
use super::super::codec::method::{self, CloseReason, MethodId, Reply};
use super::super::session::{CallFailure, CallResult, Command, Role, refused};
use super::io_loop::Driver;
use super::violation::{CHANNEL_ERROR, COMMAND_INVALID, Violation, violation};

impl Driver {
    pub(super) fn execute(&mut self, command: Command) {
        match command {
            Command::Open {
                channel: number,
                role,
                reply,
            } => {
                let mut channel = Channel::new(role);
                let call = Call::new(method::CHANNEL_OPEN_OK, reply);
                channel.waiting.push_back(call);
                self.has_calls = true;
                let index = usize::from(number);
                if self.channels.len() <= index {
                    self.channels.resize_with(index + 1, || None);
                }
                self.channels[index] = Some(channel);
                let open = method::bare(number, method::CHANNEL_OPEN);
                self.control.extend_from_slice(&open);
            }
            Command::Call {
                channel,
                frame,
                expected,
                reply,
            } => self.call(channel, &frame, expected, reply),
            Command::CloseConnection => {
                for channel in self.channels.iter().flatten() {
                    if let Role::Consumer(consumer) = &channel.role {
                        consumer.collect_all(&mut self.control);
                    }
                }
                self.closing = true;
                let close = method::close(0, 200, "");
                self.control.extend_from_slice(&close);
            }
        }
    }

    fn call(
        &mut self,
        number: u16,
        frame: &[u8],
        expected: MethodId,
        reply: tokio::sync::oneshot::Sender<CallResult>,
    ) {
        let Some(Some(channel)) = self.channels.get_mut(usize::from(number)) else {
            // Closed by the broker meanwhile: closing it once more is done, nothing is consumed on it, anything else is refused.
            let _ = reply.send(match expected {
                method::CHANNEL_CLOSE_OK | method::CANCEL_OK => Ok(Reply::Done),
                _ => Err(channel_closed("the broker has closed the channel")),
            });
            return;
        };
        // After channel.close only the broker's close-ok may follow on the channel: a second close, or any other method, is a
        // connection error (504). Both closes are answered by the one close-ok.
        if channel.closing {
            match expected {
                method::CHANNEL_CLOSE_OK => channel.waiting.push_back(Call::new(expected, reply)),
                _ => drop(reply.send(Err(channel_closed("the channel is being closed")))),
            }
            return;
        }
        if let Role::Consumer(consumer) = &channel.role {
            consumer.collect_all(&mut self.control);
        }
        self.control.extend_from_slice(frame);
        channel.waiting.push_back(Call::new(expected, reply));
        self.has_calls = true;
        channel.closing |= expected == method::CHANNEL_CLOSE_OK;
    }

    pub(super) fn answer(
        &mut self,
        number: u16,
        method: MethodId,
        reply: Reply,
    ) -> Result<(), Violation> {
        // Earlier deliveries, for instance before a cancel-ok, must have arrived when the caller continues.
        self.hand_over(number)?;
        let channel = self.open_channel(number)?;
        match channel.waiting.pop_front() {
            Some(call) if call.expected == method => {
                // Here and not in the task that waits: the broker may close the channel before that task runs.
                if method == method::CONSUME_OK
                    && let Role::Consumer(consumer) = &channel.role
                {
                    consumer.go_online();
                }
                let _ = call.reply.send(Ok(reply));
                Ok(())
            }
            _ => Err(violation(
                COMMAND_INVALID,
                format!("an unrequested answer ({method:#010x}) on channel {number}"),
            )),
        }
    }

    pub(super) fn answer_close(&mut self, number: u16) {
        let slot = self.channels.get_mut(usize::from(number));
        if let Some(channel) = slot.and_then(Option::take) {
            for call in channel.waiting {
                let _ = call.reply.send(Ok(Reply::Done));
            }
        }
    }

    pub(super) fn channel_closed(&mut self, number: u16, reason: CloseReason) {
        let _ = self.hand_over(number);
        let slot = self.channels.get_mut(usize::from(number));
        let Some(channel) = slot.and_then(Option::take) else {
            return;
        };
        // Before the calls are answered: a task may open the channel again as soon as it has its answer.
        if !channel.closing {
            self.restart_role(channel.role, &reason);
        }
        for call in channel.waiting {
            let answer: CallResult = match call.expected {
                method::CHANNEL_CLOSE_OK => Ok(Reply::Done),
                _ => Err(CallFailure::Refused(reason.clone())),
            };
            let _ = call.reply.send(answer);
        }
        // After this nothing may be sent on the channel until it is opened again.
        let close_ok = method::bare(number, method::CHANNEL_CLOSE_OK);
        self.control.extend_from_slice(&close_ok);
    }

    fn restart_role(&mut self, role: Role, reason: &CloseReason) {
        match role {
            Role::Publisher(publisher) => {
                let error = refused(format!("publish on channel {}", publisher.channel), reason);
                if !publisher.channel_closed(&error) {
                    return;
                }
                // The broker would skip requests that are not yet written.
                publisher.put_back(self.shared.write_buffer.extract(publisher.channel));
                publisher.refuse(&error, &reason.text);
                self.shared
                    .restart_publisher(&self.session, publisher, error);
            }
            Role::Consumer(consumer) if consumer.is_online() => {
                let error = refused(format!("consume queue \"{}\"", consumer.queue()), reason);
                if consumer.go_offline() {
                    self.shared.restart_consumer(&self.session, consumer, error);
                }
            }
            // The task that opens the channel learns of it from its call.
            Role::Consumer(_) | Role::Control => {}
        }
    }

    pub(super) fn consumer_cancelled(&mut self, number: u16) {
        if let Some(Some(channel)) = self.channels.get(usize::from(number))
            && let Role::Consumer(consumer) = &channel.role
        {
            self.shared
                .resume_cancelled_consumer(&self.session, Arc::clone(consumer));
        }
    }
}

fn channel_closed(text: &str) -> CallFailure {
    CallFailure::Refused(CloseReason {
        code: CHANNEL_ERROR,
        text: text.into(),
        method: 0,
    })
}
