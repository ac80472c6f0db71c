//! Messages the broker has not confirmed yet, in the order they were published.

use std::collections::{HashMap, VecDeque};
use std::task::Waker;

use super::Error;
use super::codec::method::CloseReason;
use super::codec::outgoing::{self, Parts};
use super::error::MAX_CLOSES;

/// Names a published message for as long as its publisher lives.
pub(super) type MessageId = u64;

/// Encoded messages are kept until they are confirmed, so that they can be sent again on a new connection.
#[derive(Default)]
pub(super) struct Unconfirmed {
    entries: VecDeque<Entry>,
    /// The entries' encoded frames, end to end.
    bytes: VecDeque<u8>,
    /// The broker's delivery tag of the first entry; tags count without gaps.
    first_tag: u64,
    next_id: MessageId,
    unsettled: usize,
    failures: HashMap<MessageId, Error>,
    /// The first failure of a message whose confirm no task awaited.
    unwatched_failure: Option<Error>,
}

struct Entry {
    id: MessageId,
    len: usize,
    settled: bool,
    mandatory: bool,
    /// Whether a `Confirm` for it exists.
    watched: bool,
    /// How many connections the broker has closed with an error while this message was unconfirmed.
    closes: u8,
    waker: Option<Waker>,
}

/// One `basic.ack` or `basic.nack` from the broker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Confirmation {
    pub(super) tag: u64,
    pub(super) multiple: bool,
    pub(super) accepted: bool,
}

/// A message that came back.
#[derive(Debug)]
pub(super) struct Returned<'a> {
    pub(super) code: u16,
    pub(super) text: &'a str,
    pub(super) exchange: &'a str,
    pub(super) routing_key: &'a str,
    pub(super) properties: &'a [u8],
    pub(super) body: &'a [u8],
}

impl Returned<'_> {
    pub(super) fn error(&self) -> Error {
        Error::Unroutable {
            exchange: self.exchange.into(),
            routing_key: self.routing_key.into(),
            code: self.code,
            text: self.text.into(),
        }
    }

    fn same_address(&self, parts: &Parts<'_>) -> bool {
        parts.exchange == self.exchange.as_bytes()
            && parts.routing_key == self.routing_key.as_bytes()
    }

    fn same_content(&self, parts: &Parts<'_>) -> bool {
        parts.properties == self.properties && parts.body == self.body
    }
}

impl Unconfirmed {
    pub(super) fn unsettled(&self) -> usize {
        self.unsettled
    }

    /// Keeps a message that was or will be sent with the next delivery tag.
    pub(super) fn push(&mut self, encoded: &[u8], mandatory: bool, watched: bool) -> MessageId {
        let id = self.next_id;
        self.next_id += 1;
        self.bytes.extend(encoded);
        self.entries.push_back(Entry {
            id,
            len: encoded.len(),
            settled: false,
            mandatory,
            watched,
            closes: 0,
            waker: None,
        });
        self.unsettled += 1;
        id
    }

    /// `None` while the broker has not answered; a failure is reported once.
    pub(super) fn outcome(&mut self, id: MessageId, waker: &Waker) -> Option<Result<(), Error>> {
        if let Some(entry) = self.find(id)
            && !entry.settled
        {
            entry.waker = Some(waker.clone());
            return None;
        }
        Some(self.failures.remove(&id).map_or(Ok(()), Err))
    }

    /// The confirm of this message was dropped.
    pub(super) fn unwatch(&mut self, id: MessageId) {
        if let Some(entry) = self.find(id) {
            entry.watched = false;
            entry.waker = None;
        }
        if let Some(error) = self.failures.remove(&id) {
            self.unwatched_failure.get_or_insert(error);
        }
    }

    /// The id of the next message to be published.
    pub(super) fn next_id(&self) -> MessageId {
        self.next_id
    }

    /// Whether the broker has answered for every message in front of `id`.
    pub(super) fn is_settled_before(&self, id: MessageId) -> bool {
        self.entries.front().is_none_or(|first| first.id >= id)
    }

    pub(super) fn take_unwatched_failure(&mut self) -> Option<Error> {
        self.unwatched_failure.take()
    }

    pub(super) fn fail_unwatched(&mut self, error: Error) {
        self.unwatched_failure.get_or_insert(error);
    }

    fn find(&mut self, id: MessageId) -> Option<&mut Entry> {
        let first = self.entries.front()?.id;
        let guess = usize::try_from(id.checked_sub(first)?).ok()?;
        // Ids have gaps only after a reconnect, when confirmed messages were taken out between others.
        let index = match self.entries.get(guess) {
            Some(entry) if entry.id == id => guess,
            _ => self
                .entries
                .binary_search_by_key(&id, |entry| entry.id)
                .ok()?,
        };
        self.entries.get_mut(index)
    }

    /// Applies a confirmation to the messages it covers; their wakers go to `woken`. False if the tag was never used.
    pub(super) fn settle(&mut self, confirmation: Confirmation, woken: &mut Vec<Waker>) -> bool {
        // Tag 0 with `multiple` means all so far.
        let end = if confirmation.tag == 0 && confirmation.multiple {
            self.entries.len()
        } else if let Some(index) = confirmation.tag.checked_sub(self.first_tag) {
            // Saturating: the tag is the broker's and may be any number.
            usize::try_from(index).map_or(usize::MAX, |index| index.saturating_add(1))
        } else {
            return true;
        };
        if end > self.entries.len() {
            return false;
        }
        let start = if confirmation.multiple { 0 } else { end - 1 };
        for index in start..end {
            self.settle_at(index, confirmation.accepted, woken);
        }
        self.drop_settled_front();
        true
    }

    fn settle_at(&mut self, index: usize, accepted: bool, woken: &mut Vec<Waker>) {
        if self.entries[index].settled {
            return;
        }
        if !accepted {
            let error = self.not_accepted(index);
            self.failures.insert(self.entries[index].id, error);
        }
        let entry = &mut self.entries[index];
        entry.settled = true;
        self.unsettled -= 1;
        woken.extend(entry.waker.take());
        if !entry.watched
            && let Some(error) = self.failures.remove(&entry.id)
        {
            self.unwatched_failure.get_or_insert(error);
        }
    }

    fn drop_settled_front(&mut self) {
        let mut len = 0;
        while let Some(entry) = self.entries.front()
            && entry.settled
        {
            len += entry.len;
            self.first_tag += 1;
            self.entries.pop_front();
        }
        self.bytes.drain(..len);
        if self.bytes.is_empty() {
            self.bytes.shrink_to(1 << 20);
        }
    }

    fn not_accepted(&mut self, index: usize) -> Error {
        let (exchange, routing_key) = self.address(index);
        Error::NotAccepted {
            exchange,
            routing_key,
        }
    }

    /// Exchange and routing key.
    fn address(&self, index: usize) -> (String, String) {
        let encoded = self.encoded(index);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        outgoing::parts(&encoded)
            .map(|parts| (text(parts.exchange), text(parts.routing_key)))
            .unwrap_or_default()
    }

    fn encoded(&self, index: usize) -> Vec<u8> {
        let start: usize = self.entries.range(..index).map(|entry| entry.len).sum();
        let len = self.entries[index].len;
        self.bytes.range(start..start + len).copied().collect()
    }

    /// Notes that a message came back; its confirm follows and completes the failure.
    ///
    /// `basic.return` carries no delivery tag. The message is recognised by its content, or by its address where the
    /// broker wrote the properties anew.
    pub(super) fn returned(&mut self, returned: &Returned<'_>) {
        let mut by_address = None;
        for index in 0..self.entries.len() {
            let entry = &self.entries[index];
            if entry.settled || !entry.mandatory || self.failures.contains_key(&entry.id) {
                continue;
            }
            let encoded = self.encoded(index);
            let Some(parts) = outgoing::parts(&encoded) else {
                continue;
            };
            if !returned.same_address(&parts) {
                continue;
            }
            by_address.get_or_insert(index);
            if returned.same_content(&parts) {
                by_address = Some(index);
                break;
            }
        }
        if let Some(index) = by_address {
            self.failures
                .insert(self.entries[index].id, returned.error());
        }
    }

    /// Fails the messages to the exchanges `matches` selects, or all if it selects none, and wakes the waiting tasks.
    pub(super) fn fail(
        &mut self,
        error: &Error,
        matches: impl Fn(&str) -> bool,
        woken: &mut Vec<Waker>,
    ) {
        let open: Vec<usize> = (0..self.entries.len())
            .filter(|index| !self.entries[*index].settled)
            .collect();
        let matching: Vec<usize> = open
            .iter()
            .copied()
            .filter(|index| {
                let encoded = self.encoded(*index);
                outgoing::parts(&encoded)
                    .is_some_and(|parts| matches(&String::from_utf8_lossy(parts.exchange)))
            })
            .collect();
        let failing = if matching.is_empty() { open } else { matching };
        for index in failing {
            self.failures.insert(self.entries[index].id, error.clone());
            self.settle_at(index, true, woken);
        }
        self.drop_settled_front();
    }

    /// The broker has closed the connection with an error, and one of the unconfirmed messages may be the cause. Which one, the broker does
    /// not say: each is given up once this has happened to it several times, for it would go on for ever.
    pub(super) fn connection_closed(&mut self, reason: &CloseReason, woken: &mut Vec<Waker>) {
        for index in 0..self.entries.len() {
            let entry = &mut self.entries[index];
            if entry.settled {
                continue;
            }
            entry.closes += 1;
            if entry.closes == MAX_CLOSES {
                let (exchange, routing_key) = self.address(index);
                let object = format!(
                    "message to exchange \"{exchange}\" with routing key \"{routing_key}\""
                );
                let error = Error::closed_by_broker(object, reason);
                self.failures.insert(self.entries[index].id, error);
                self.settle_at(index, true, woken);
            }
        }
        self.drop_settled_front();
    }

    /// Writes what is unconfirmed once more, for a channel that counts delivery tags from 1.
    pub(super) fn resend(&mut self, out: &mut Vec<u8>, frame_max: usize) {
        let mut bytes = std::mem::take(&mut self.bytes);
        let mut rest: &[u8] = bytes.make_contiguous();
        let mut kept = VecDeque::with_capacity(rest.len());
        let mut again = Vec::new();
        self.entries.retain_mut(|entry| {
            let (encoded, tail) = rest.split_at(entry.len);
            rest = tail;
            if !entry.settled {
                again.clear();
                outgoing::put_again(&mut again, encoded, frame_max);
                entry.len = again.len();
                kept.extend(&again);
                out.extend_from_slice(&again);
            }
            !entry.settled
        });
        // A message returned on the old connection gets its answer anew.
        self.failures.retain(|id, _| {
            self.entries
                .binary_search_by_key(id, |entry| entry.id)
                .is_err()
        });
        self.bytes = kept;
        self.first_tag = 1;
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::super::codec::{Properties, frame, method};
    use super::*;

    fn encoded(exchange: &str, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        method::put_publish(&mut out, 1, exchange, "key", true);
        frame::put_header(&mut out, 1, &Properties::default(), body.len());
        frame::put_body(&mut out, 1, body, 4096);
        out
    }

    fn with(bodies: &[&[u8]]) -> Unconfirmed {
        let mut unconfirmed = Unconfirmed::default();
        unconfirmed.resend(&mut Vec::new(), 4096);
        for body in bodies {
            unconfirmed.push(&encoded("ex", body), true, true);
        }
        unconfirmed
    }

    fn settle(unconfirmed: &mut Unconfirmed, tag: u64, multiple: bool, accepted: bool) -> bool {
        let confirmation = Confirmation {
            tag,
            multiple,
            accepted,
        };
        unconfirmed.settle(confirmation, &mut Vec::new())
    }

    fn outcome(unconfirmed: &mut Unconfirmed, id: MessageId) -> Option<Result<(), Error>> {
        unconfirmed.outcome(id, Waker::noop())
    }

    #[test]
    fn multiple_confirms_everything_up_to_its_tag() {
        let mut unconfirmed = with(&[b"a", b"b", b"c"]);
        assert!(settle(&mut unconfirmed, 2, true, true));
        assert_eq!(outcome(&mut unconfirmed, 0), Some(Ok(())));
        assert_eq!(outcome(&mut unconfirmed, 1), Some(Ok(())));
        assert_eq!(outcome(&mut unconfirmed, 2), None);
        assert_eq!(unconfirmed.unsettled(), 1);
    }

    #[test]
    fn later_messages_do_not_delay_a_flush() {
        let mut unconfirmed = with(&[b"a", b"b"]);
        let target = unconfirmed.next_id();
        unconfirmed.push(&encoded("ex", b"c"), true, true);
        assert!(settle(&mut unconfirmed, 2, false, true));
        assert!(!unconfirmed.is_settled_before(target));
        assert!(settle(&mut unconfirmed, 1, false, true));
        assert!(unconfirmed.is_settled_before(target));
        assert_eq!(unconfirmed.unsettled(), 1);
    }

    #[test]
    fn confirms_may_come_in_any_order_and_more_than_once() {
        let mut unconfirmed = with(&[b"a", b"b", b"c"]);
        assert!(settle(&mut unconfirmed, 3, false, true));
        assert!(settle(&mut unconfirmed, 3, true, true));
        assert!(settle(&mut unconfirmed, 3, true, true));
        assert_eq!(unconfirmed.unsettled(), 0);
        assert!(!settle(&mut unconfirmed, 4, false, true));
    }

    #[test]
    fn a_nack_fails_its_message_once() {
        let mut unconfirmed = with(&[b"a", b"b"]);
        assert!(settle(&mut unconfirmed, 1, false, false));
        let failed = outcome(&mut unconfirmed, 0);
        assert!(
            matches!(failed, Some(Err(Error::NotAccepted { exchange, .. })) if exchange == "ex")
        );
        assert_eq!(outcome(&mut unconfirmed, 1), None);
    }

    #[test]
    fn a_returned_message_is_found_by_its_content_and_fails_with_its_confirm() {
        let mut unconfirmed = with(&[b"a", b"b", b"c"]);
        unconfirmed.returned(&Returned {
            code: 312,
            text: "NO_ROUTE",
            exchange: "ex",
            routing_key: "key",
            properties: &[0, 0],
            body: b"b",
        });
        assert_eq!(outcome(&mut unconfirmed, 1), None);
        assert!(settle(&mut unconfirmed, 3, true, true));
        assert_eq!(outcome(&mut unconfirmed, 0), Some(Ok(())));
        assert!(matches!(
            outcome(&mut unconfirmed, 1),
            Some(Err(Error::Unroutable { code: 312, .. }))
        ));
        assert_eq!(outcome(&mut unconfirmed, 2), Some(Ok(())));
    }

    #[test]
    fn only_what_is_unconfirmed_is_sent_again_and_tags_start_at_one() {
        let mut unconfirmed = with(&[b"a", b"b", b"c", b"d"]);
        assert!(settle(&mut unconfirmed, 1, false, true));
        assert!(settle(&mut unconfirmed, 3, false, true));
        let mut out = Vec::new();
        unconfirmed.resend(&mut out, 4096);
        assert_eq!(out, [encoded("ex", b"b"), encoded("ex", b"d")].concat());
        assert!(settle(&mut unconfirmed, 2, false, true));
        assert_eq!(outcome(&mut unconfirmed, 3), Some(Ok(())));
        assert_eq!(outcome(&mut unconfirmed, 1), None);
        let next = unconfirmed.push(&encoded("ex", b"e"), false, true);
        assert!(settle(&mut unconfirmed, 3, true, true));
        assert_eq!(outcome(&mut unconfirmed, 1), Some(Ok(())));
        assert_eq!(outcome(&mut unconfirmed, next), Some(Ok(())));
    }

    #[test]
    fn a_refused_exchange_fails_its_own_messages_only() {
        let mut unconfirmed = with(&[b"a"]);
        let other = unconfirmed.push(&encoded("missing", b"b"), false, true);
        let error = Error::usage("refused");
        unconfirmed.fail(&error, |exchange| exchange == "missing", &mut Vec::new());
        assert_eq!(outcome(&mut unconfirmed, other), Some(Err(error)));
        assert_eq!(outcome(&mut unconfirmed, 0), None);
    }

    #[test]
    fn a_message_is_given_up_after_three_connections_that_the_broker_closed_with_an_error() {
        let mut unconfirmed = with(&[b"a", b"b"]);
        assert!(settle(&mut unconfirmed, 2, false, true));
        let reason = CloseReason {
            code: 541,
            text: "INTERNAL_ERROR".into(),
            method: 0,
        };
        for _ in 0..2 {
            unconfirmed.connection_closed(&reason, &mut Vec::new());
            unconfirmed.resend(&mut Vec::new(), 4096);
            assert_eq!(outcome(&mut unconfirmed, 0), None);
        }
        let later = unconfirmed.push(&encoded("ex", b"c"), false, true);
        unconfirmed.connection_closed(&reason, &mut Vec::new());
        let failed = outcome(&mut unconfirmed, 0).unwrap().unwrap_err();
        assert_eq!(
            failed.to_string(),
            "message to exchange \"ex\" with routing key \"key\": the broker closed the connection: INTERNAL_ERROR (AMQP 541)"
        );
        let mut out = Vec::new();
        unconfirmed.resend(&mut out, 4096);
        assert_eq!(out, encoded("ex", b"c"));
        assert_eq!(outcome(&mut unconfirmed, later), None);
    }

    #[test]
    fn a_failure_nobody_waits_for_is_kept_for_the_next_flush() {
        let mut unconfirmed = with(&[b"a", b"b"]);
        unconfirmed.unwatch(0);
        assert!(settle(&mut unconfirmed, 2, true, false));
        unconfirmed.unwatch(1);
        assert!(matches!(
            unconfirmed.take_unwatched_failure(),
            Some(Error::NotAccepted { .. })
        ));
        assert_eq!(unconfirmed.take_unwatched_failure(), None);
    }
}
