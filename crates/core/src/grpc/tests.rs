//! Calls that leave, stall or are too many: what counts them ends with them.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use hyper::{HeaderMap, Request};
use tokio::time::{Instant, sleep};

use super::test_support::{STREAM, UNARY, connect, frame, head, method, serve};
use super::{
    Call, Calls, Code, ConcurrencyLimits, Encoding, Event, Lane, Limits, RefusalReason, Status,
};
use crate::local::run;
use crate::server::{Action, Counts, Requester as _};

const WATCH: &str = "/test.Echo/Watch";

fn calls(limits: Limits) -> Calls {
    let watch = method(WATCH, false, Lane::Watch, &limits);
    super::test_support::calls(limits, [watch])
}

fn message(flags: u8, payload: &[u8]) -> Bytes {
    frame(flags, payload).freeze()
}

struct Sent {
    response: ResponseFuture,
    body: SendStream<Bytes>,
}

impl Sent {
    /// The status in the head of the answer, which is all there is of a refusal.
    async fn status(self) -> (String, String) {
        let response = self.response.await.unwrap();
        let field = |name| {
            let value = response.headers().get(name);
            value.map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
        };
        (field("grpc-status"), field("grpc-message"))
    }
}

async fn send(
    client: &SendRequest<Bytes>,
    request: Request<()>,
    body: &[Bytes],
    ends: bool,
) -> Sent {
    let mut client = client.clone().ready().await.unwrap();
    let (response, mut stream) = client.send_request(request, false).unwrap();
    for (index, chunk) in body.iter().enumerate() {
        let is_last = ends && index + 1 == body.len();
        stream.send_data(chunk.clone(), is_last).unwrap();
    }
    Sent {
        response,
        body: stream,
    }
}

async fn send_hello(client: &SendRequest<Bytes>, path: &str) -> Sent {
    send(client, head(path, &[]), &[message(0, b"hello")], true).await
}

async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        sleep(Duration::from_millis(1)).await;
    }
}

async fn take(calls: &Calls) -> Rc<Call> {
    loop {
        calls.next().await;
        match calls.take() {
            Some(Event::Request(call)) => return call,
            _ => continue,
        }
    }
}

/// Ends a call and its handler.
fn finish(call: &Call) {
    call.finish(&Status::OK, HeaderMap::new());
    call.handled();
}

fn counts(calls: &Calls) -> Counts {
    calls.shared.admission.counts()
}

#[test]
fn calls_that_were_abandoned_do_not_count_towards_the_queue_and_are_not_kept() {
    run(async {
        let calls = calls(Limits {
            in_flight: 1,
            queue: 3,
            client_share: 1.0,
            ..Limits::default()
        });
        let client = connect(serve(&calls)).await;
        let _first = send_hello(&client, UNARY).await;
        let handled = take(&calls).await;
        for _ in 0..30 {
            let mut waiting = VecDeque::new();
            for _ in 0..3 {
                waiting.push_back(send_hello(&client, UNARY).await);
            }
            until(|| counts(&calls).waiting == 3).await;
            for sent in &mut waiting {
                sent.body.send_reset(Reason::CANCEL);
            }
            until(|| counts(&calls).waiting == 0).await;
            assert_eq!(counts(&calls).requests, 1);
        }
        let _last = send_hello(&client, UNARY).await;
        until(|| calls.in_flight() == 2).await;
        finish(&handled);
        let last = take(&calls).await;
        assert_eq!(last.take_message().unwrap(), "hello");
    });
}

#[test]
fn a_full_queue_refuses_calls_whose_request_has_not_arrived_too() {
    run(async {
        let calls = calls(Limits {
            queue: 2,
            client_share: 1.0,
            ..Limits::default()
        });
        let client = connect(serve(&calls)).await;
        let half = Bytes::from_static(b"\0\0\0\0\x05he");
        let mut halves = Vec::new();
        for _ in 0..2 {
            halves.push(
                send(
                    &client,
                    head(UNARY, &[]),
                    std::slice::from_ref(&half),
                    false,
                )
                .await,
            );
        }
        let refused = send_hello(&client, UNARY).await.status().await;
        assert_eq!(refused.0, "14");
        assert_eq!(
            refused.1,
            "the server has 2 calls waiting, which is its limit"
        );
        let reports = calls.refusals().await;
        assert_eq!(
            (reports[0].reason, reports[0].count),
            (RefusalReason::QueueFull, 1)
        );
        assert!(reports[0].peer.is_some());
    });
}

/// A client that resets its calls as soon as they are handled, while their handlers go on.
async fn resets(path: &str, limits: Limits, places: usize) {
    let calls = calls(limits);
    let client = connect(serve(&calls)).await;
    let mut handlers = Vec::new();
    for _ in 0..places {
        let mut sent = send_hello(&client, path).await;
        handlers.push(take(&calls).await);
        sent.body.send_reset(Reason::CANCEL);
        until(|| calls.in_flight() == 0).await;
    }
    while calls.take().is_some() {}
    let mut more = send_hello(&client, path).await;
    let waits = || counts(&calls).queued > 0;
    tokio::select! {
        // The client has its share.
        refused = &mut more.response => assert!(refused.is_ok()),
        () = until(waits) => assert!(calls.take().is_none(), "{path} has more than {places} handlers"),
        _ = take(&calls) => panic!("{path} has more than {places} handlers"),
    }
    drop(more);
    until(|| calls.in_flight() == 0).await;
    handlers.remove(0).handled();
    let _again = send_hello(&client, path).await;
    handlers.push(take(&calls).await);
    drop(handlers);
    drop(client);
}

#[test]
fn a_call_keeps_its_place_until_its_handler_has_ended_though_its_client_has_gone() {
    run(async {
        let limits = || Limits {
            in_flight: 3,
            streams: 3,
            watches: 3,
            watches_per_connection: 3,
            client_share: 1.0,
            ..Limits::default()
        };
        resets(UNARY, limits(), 3).await;
        resets(STREAM, limits(), 3).await;
        resets(WATCH, limits(), 3).await;
        let per_connection = Limits {
            streams_per_connection: 3,
            ..Limits::default()
        };
        resets(STREAM, per_connection, 3).await;
        let limit = ConcurrencyLimits {
            name: "test".to_owned(),
            running: 3,
            queue: 1,
        };
        let concurrency = vec![limit];
        let gated = Limits {
            concurrency,
            ..Limits::default()
        };
        resets(UNARY, gated, 3).await;
    });
}

#[test]
fn a_handler_that_has_ended_leaves_its_place_though_nobody_reads_its_answer() {
    run(async {
        let calls = calls(Limits {
            in_flight: 1,
            ..Limits::default()
        });
        let client = connect(serve(&calls)).await;
        let _unread = send_hello(&client, UNARY).await;
        let call = take(&calls).await;
        let _ = call.write(&vec![0; 1 << 20]);
        finish(&call);
        let _next = send_hello(&client, UNARY).await;
        take(&calls).await;
    });
}

/// xorshift64: the same calls for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Calls of every kind that are made, handled, expired and reset in any order.
async fn disorder(seed: u64) {
    let limit = ConcurrencyLimits {
        name: "test".to_owned(),
        running: 4,
        queue: 3,
    };
    let calls = calls(Limits {
        in_flight: 3,
        streams: 2,
        queue: 5,
        streams_per_connection: 4,
        watches: 3,
        watches_per_connection: 3,
        client_share: 1.0,
        buffered_bytes: 200 << 10,
        concurrency: vec![limit],
        ..Limits::default()
    });
    let address = serve(&calls);
    let client = connect(address).await;
    let mut dice = Dice(seed);
    let (mut sent, mut handled) = (Vec::new(), Vec::new());
    for _ in 0..60 {
        match dice.below(10) {
            0..=4 => {
                let path = [UNARY, UNARY, STREAM, WATCH][dice.below(4) as usize];
                let size = [5, 90 << 10][dice.below(2) as usize];
                let wire = message(0, &vec![b'x'; size]);
                let length = [wire.len(), wire.len() / 2][dice.below(2) as usize];
                let ends = length == wire.len() && dice.below(3) > 0;
                let fields = [("grpc-timeout", "3m")];
                let fields = &fields[..dice.below(4).min(1) as usize ^ 1];
                sent.push(send(&client, head(path, fields), &[wire.slice(..length)], ends).await);
            }
            5 | 6 if !sent.is_empty() => {
                let index = dice.below(sent.len() as u64) as usize;
                sent.remove(index).body.send_reset(Reason::CANCEL);
            }
            7 => {
                while let Some(event) = calls.take() {
                    if let Event::Request(call) = event {
                        handled.push(call);
                    }
                }
            }
            8 if !handled.is_empty() => {
                let index = dice.below(handled.len() as u64) as usize;
                let call = handled.remove(index);
                let _ = call.take_message();
                call.finish(&Status::OK, HeaderMap::new());
                call.handled();
            }
            9 => sleep(Duration::from_millis(4)).await,
            _ => tokio::task::yield_now().await,
        }
    }
    drop(sent);
    drop(client);
    until(|| calls.in_flight() == 0).await;
    let mut running = [0; 3];
    handled
        .iter()
        .for_each(|call| running[call.lane() as usize] += 1);
    assert_eq!(counts(&calls).running, running);
    for (index, call) in handled.into_iter().enumerate() {
        // A handler that is destroyed says nothing.
        if index % 2 == 0 {
            call.handled();
        }
    }
    while calls.take().is_some() {}
    assert_eq!(counts(&calls), Counts::default());
}

#[test]
fn calls_may_be_cancelled_anywhere_and_nothing_is_held_for_them_after_that() {
    run(async {
        for seed in 1..=25 {
            disorder(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed)).await;
        }
    });
}

#[test]
fn streams_and_watches_of_four_connections_leave_room_for_every_other_call() {
    run(async {
        let calls = calls(Limits::default());
        let address = serve(&calls);
        let mut held = Vec::new();
        for _ in 0..4 {
            let client = connect(address).await;
            for index in 0..250 {
                let path = [STREAM, WATCH][index % 2];
                held.push(send(&client, head(path, &[]), &[message(0, b"")], path == WATCH).await);
            }
            held.push(Sent {
                ..send_hello(&client, STREAM).await
            });
        }
        // 125 streams and 10 watches of each connection, and one stream more.
        until(|| calls.in_flight() == 4 * 136).await;
        let client = connect(address).await;
        let _sent = send_hello(&client, UNARY).await;
        loop {
            if take(&calls).await.lane() == Lane::Unary {
                break;
            }
        }
        let report = &calls.refusals().await[0];
        assert_eq!(report.reason, RefusalReason::WatchLimit);
    });
}

#[test]
fn streams_that_use_up_their_budget_take_nothing_from_unary_calls() {
    run(async {
        let calls = calls(Limits {
            streams: 2,
            client_share: 1.0,
            ..Limits::default()
        });
        let client = connect(serve(&calls)).await;
        let mut held = Vec::new();
        for _ in 0..5 {
            held.push(send(&client, head(STREAM, &[]), &[message(0, b"")], false).await);
        }
        until(|| calls.in_flight() == 5).await;
        let (first, second) = (take(&calls).await, take(&calls).await);
        assert_eq!((first.lane(), second.lane()), (Lane::Stream, Lane::Stream));
        let _sent = send_hello(&client, UNARY).await;
        assert_eq!(take(&calls).await.lane(), Lane::Unary);
        finish(&first);
        assert_eq!(take(&calls).await.lane(), Lane::Stream);
    });
}

#[test]
fn a_connection_that_has_all_its_streams_open_is_refused_more_of_them() {
    run(async {
        let calls = calls(Limits {
            streams_per_connection: 2,
            ..Limits::default()
        });
        let client = connect(serve(&calls)).await;
        let mut held = Vec::new();
        for _ in 0..2 {
            held.push(send(&client, head(STREAM, &[]), &[message(0, b"")], false).await);
        }
        let (status, why) = send_hello(&client, STREAM).await.status().await;
        assert_eq!(status, "8");
        assert_eq!(why, "the connection has 2 streams open, which is its limit");
        held.clear();
        until(|| calls.in_flight() == 0).await;
        let _again = send_hello(&client, STREAM).await;
        take(&calls).await;
    });
}

#[test]
fn a_request_that_stalls_ends_by_itself_and_is_counted() {
    run(async {
        let calls = calls(Limits {
            request_timeout: Duration::from_millis(20),
            ..Limits::default()
        });
        let client = connect(serve(&calls)).await;
        let half = Bytes::from_static(b"\0\0\0\0\x05he");
        let sent = send(&client, head(UNARY, &[]), &[half], false).await;
        let (status, why) = sent.status().await;
        assert_eq!(status, "4");
        assert!(
            why.ends_with("of the request arrived in 20ms, 1 KiB a second is the least"),
            "{why}"
        );
        assert_eq!(
            calls.refusals().await[0].reason,
            RefusalReason::RequestTooSlow
        );
        until(|| calls.in_flight() == 0).await;
        assert_eq!(counts(&calls), Counts::default());
    });
}

#[test]
fn a_request_that_arrives_slowly_but_steadily_is_waited_for() {
    run(async {
        let calls = calls(Limits {
            request_timeout: Duration::from_secs(30),
            ..Limits::default()
        });
        let client = connect(serve(&calls)).await;
        let wire = message(0, &[7; 100 << 10]);
        let sent = send(&client, head(UNARY, &[]), &[wire.slice(..40 << 10)], false).await;
        let call = || calls.shared.admission.first_request();
        until(|| call().is_some_and(|call| call.inbound.borrow().arrived() == 40 << 10)).await;
        let call = call().unwrap();
        // As if its time had come: 40 KiB are enough for 30 seconds once, and not twice.
        let check = || call.act(Action::CheckUpload);
        check();
        assert!(call.is_open());
        check();
        assert!(!call.is_open());
        assert_eq!(sent.status().await.0, "4");
    });
}

#[test]
fn one_connection_has_no_more_of_its_requests_waiting_than_it_may_and_all_of_them_end() {
    const SIZE: usize = 300 << 10;
    const ALL: usize = 1 << 20;
    run(async {
        let calls = calls(Limits {
            in_flight: 1,
            buffered_bytes: ALL,
            ..Limits::default()
        });
        let client = connect(serve(&calls)).await;
        let mut held = Vec::new();
        for _ in 0..12 {
            held.push(send(&client, head(UNARY, &[]), &[message(0, &[7; SIZE])], true).await);
        }
        let first = take(&calls).await;
        until(|| counts(&calls).queued >= 2).await;
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        let reserved = counts(&calls).reserved;
        assert!(reserved <= ALL, "{reserved} bytes");
        let waiting = counts(&calls).queued;
        assert!(waiting <= ALL / SIZE, "{waiting} whole requests wait");
        let mut call = first;
        for _ in 1..12 {
            assert_eq!(call.take_message().unwrap().len(), SIZE);
            finish(&call);
            call = take(&calls).await;
        }
        assert_eq!(call.take_message().unwrap().len(), SIZE);
    });
}

#[test]
fn a_compressed_request_waits_as_it_was_sent() {
    run(async {
        let calls = calls(Limits::default());
        let client = connect(serve(&calls)).await;
        let bomb = Encoding::Gzip.compress(&vec![0; 3 << 20]).unwrap();
        let wire = message(1, &bomb);
        let request = head(UNARY, &[("grpc-encoding", "gzip")]);
        let _sent = send(&client, request, &[wire], true).await;
        let call = take(&calls).await;
        let waiting = call
            .message
            .borrow()
            .as_ref()
            .map(|frame| frame.payload.len());
        assert_eq!(waiting, Some(bomb.len()));
        assert_eq!(call.take_message().unwrap().len(), 3 << 20);
    });
}

#[test]
fn the_second_message_of_a_unary_call_is_not_read_to_its_end() {
    run(async {
        let calls = calls(Limits::default());
        let client = connect(serve(&calls)).await;
        let wire = [&message(0, b"one")[..], &message(0, &[7; 1_000])[..500]].concat();
        let sent = send(&client, head(UNARY, &[]), &[wire.into()], false).await;
        let (status, why) = sent.status().await;
        assert_eq!(status, "12", "{why}");
        assert_eq!(
            calls.refusals().await[0].reason,
            RefusalReason::MalformedMessage
        );
    });
}

#[test]
fn an_expired_call_leaves_the_queue_at_once() {
    run(async {
        let calls = calls(Limits {
            in_flight: 1,
            ..Limits::default()
        });
        let client = connect(serve(&calls)).await;
        let _first = send_hello(&client, UNARY).await;
        let _handled = take(&calls).await;
        let request = head(UNARY, &[("grpc-timeout", "1m")]);
        let begun = Instant::now();
        let late = send(&client, request, &[message(0, b"late")], true).await;
        assert_eq!(late.status().await.0, "4");
        assert!(begun.elapsed() >= Duration::from_millis(1));
        assert_eq!(counts(&calls).waiting, 0);
        assert_eq!(
            calls.refusals().await[0].reason,
            RefusalReason::ExpiredInQueue
        );
    });
}

#[test]
fn a_message_that_cannot_be_decompressed_is_counted_once() {
    run(async {
        let calls = calls(Limits::default());
        let client = connect(serve(&calls)).await;
        let compressed = &[("grpc-encoding", "gzip")];
        let wire = [message(1, b"no gzip")];
        let _unary = send(&client, head(UNARY, compressed), &wire, true).await;
        let call = take(&calls).await;
        assert!(call.take_message().is_err());
        let report = calls.refusals().await.remove(0);
        assert_eq!(
            (report.reason, report.count),
            (RefusalReason::MalformedMessage, 1)
        );
        assert!(report.detail.contains("not valid gzip data"), "{report:?}");

        let bomb = Encoding::Gzip.compress(&vec![0; 5 << 20]).unwrap();
        let _stream = send(
            &client,
            head(STREAM, compressed),
            &[message(1, &bomb)],
            true,
        )
        .await;
        let call = take(&calls).await;
        for _ in 0..3 {
            assert!(call.read().await.is_err());
        }
        let report = calls.refusals().await.remove(0);
        assert_eq!(
            (report.reason, report.count),
            (RefusalReason::MessageTooLarge, 1)
        );
    });
}

/// Metadata of so many bytes.
fn metadata_of(name: &'static str, bytes: usize) -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.insert(name, "a".repeat(bytes).parse().unwrap());
    fields
}

#[test]
fn metadata_above_the_limit_ends_its_call_as_internal_and_no_other() {
    run(async {
        let calls = calls(Limits::default());
        let client = connect(serve(&calls)).await;
        let slow = send_hello(&client, UNARY).await;
        let slow_call = take(&calls).await;

        let trailing = send_hello(&client, UNARY).await;
        let call = take(&calls).await;
        assert!(call.finish(&Status::OK, metadata_of("x-large", 300_000)));
        let message = "the trailing metadata of /test.Echo/Unary has 300";
        let (code, text) = trailing.status().await;
        assert_eq!(code, "13");
        assert!(text.starts_with(message), "{text}");
        assert!(text.ends_with(" bytes, the limit is 8192"), "{text}");

        let initial = send_hello(&client, UNARY).await;
        let call = take(&calls).await;
        assert!(!call.begin(metadata_of("x-large", 300_000)));
        assert!(!call.is_open());
        let (code, text) = initial.status().await;
        assert_eq!(code, "13");
        assert!(text.starts_with("the initial metadata of "), "{text}");

        let report = calls.refusals().await.remove(0);
        assert_eq!(report.reason, RefusalReason::MetadataTooLarge);
        assert!(report.detail.ends_with("the limit is 8192"));

        let long = send_hello(&client, UNARY).await;
        let call = take(&calls).await;
        let status = Status::new(Code::UNKNOWN, "\u{1F608}".repeat(300_000));
        call.finish(&status, metadata_of("x-small", 5_000));
        let (code, text) = long.status().await;
        assert_eq!(code, "2");
        assert!(text.len() <= 2048 && text.ends_with(" [cut, the message has 1200000 bytes]"));

        call.handled();
        finish(&slow_call);
        assert_eq!(slow.status().await.0, "0");
    });
}

#[test]
fn a_status_keeps_its_code_and_message_when_its_metadata_is_above_the_limit() {
    run(async {
        let details = "grpc-status-details-bin";
        let and = |mut fields: HeaderMap, others: HeaderMap| {
            fields.extend(others);
            fields
        };
        for (trailers, kept, dropped) in [
            (
                and(metadata_of(details, 300_000), metadata_of("x-small", 5_000)),
                &["x-small"][..],
                "the details are dropped",
            ),
            (
                and(
                    metadata_of(details, 10),
                    and(
                        metadata_of("x-large", 300_000),
                        metadata_of("grpc-retry-pushback-ms", 1),
                    ),
                ),
                &["grpc-retry-pushback-ms"],
                "its metadata is dropped",
            ),
            (
                metadata_of("x-large", 300_000),
                &[],
                "its metadata is dropped",
            ),
        ] {
            let calls = calls(Limits::default());
            let client = connect(serve(&calls)).await;
            let sent = send_hello(&client, UNARY).await;
            let call = take(&calls).await;
            assert!(call.finish(&Status::new(Code::PERMISSION_DENIED, "why"), trailers));
            let head = sent.response.await.unwrap().into_parts().0.headers;
            assert_eq!(head["grpc-status"], "7");
            assert_eq!(head["grpc-message"], "why");
            for name in [details, "x-small", "x-large", "grpc-retry-pushback-ms"] {
                let is_kept = kept.contains(&name);
                assert_eq!(head.contains_key(name), is_kept, "{name}: {dropped}");
            }
            let report = calls.refusals().await.remove(0);
            assert_eq!(report.reason, RefusalReason::MetadataTooLarge);
            let detail = &report.detail;
            let what = "the status PERMISSION_DENIED with its metadata of /test.Echo/Unary has 30";
            assert!(detail.starts_with(what), "{detail}");
            let end = format!(" bytes, the limit is 8192: {dropped}");
            assert!(detail.ends_with(&end), "{detail}");
        }
    });
}

#[test]
fn unary_calls_of_one_client_leave_places_and_room_in_the_queue_to_others() {
    run(async {
        let calls = calls(Limits {
            in_flight: 2,
            queue: 4,
            ..Limits::default()
        });
        let client = connect(serve(&calls)).await;
        let mut held = vec![send_hello(&client, UNARY).await];
        let running = take(&calls).await;
        for _ in 0..2 {
            held.push(send_hello(&client, UNARY).await);
        }
        until(|| counts(&calls).queued == 2).await;
        assert!(
            calls.take().is_none(),
            "one of two places is the client's share"
        );
        let (status, why) = send_hello(&client, UNARY).await.status().await;
        assert_eq!(status, "8");
        assert_eq!(
            why,
            "the client address has 2 calls waiting, which is its limit"
        );
        let report = calls.refusals().await.remove(0);
        assert_eq!((report.reason, report.count), (RefusalReason::QueueFull, 1));
        finish(&running);
        take(&calls).await;
    });
}

#[test]
fn streams_of_one_client_leave_places_to_others() {
    run(async {
        let calls = calls(Limits {
            streams: 4,
            watches: 4,
            ..Limits::default()
        });
        let client = connect(serve(&calls)).await;
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(send_hello(&client, STREAM).await);
        }
        let _running = (take(&calls).await, take(&calls).await);
        until(|| counts(&calls).queued == 1).await;
        assert!(
            calls.take().is_none(),
            "two of four places are the client's share"
        );
        for _ in 0..2 {
            held.push(send_hello(&client, WATCH).await);
        }
        let (status, why) = send_hello(&client, WATCH).await.status().await;
        assert_eq!(status, "8");
        assert_eq!(
            why,
            "the client address has 2 health watches open, which is its limit"
        );
    });
}

#[test]
fn a_client_that_takes_nothing_of_its_answers_is_disconnected_and_its_handler_told() {
    run(async {
        for path in [UNARY, STREAM] {
            let calls = calls(Limits {
                write_timeout: Some(Duration::from_millis(500)),
                ..Limits::default()
            });
            let client = connect(serve(&calls)).await;
            let sent = send_hello(&client, path).await;
            let call = take(&calls).await;
            // More than the window of a client that reads nothing.
            let _ = call.write(&vec![0; 1 << 20]);
            let mut answer = sent.response.await.unwrap().into_body();
            calls.next().await;
            assert!(matches!(calls.take(), Some(Event::Gone(id)) if id == call.id()));
            while let Some(Ok(_)) = answer.data().await {}
            assert!(client.ready().await.is_err(), "the connection is open");
        }
    });
}

#[test]
fn a_stream_that_is_silent_or_read_slowly_is_not_taken_for_one_that_is_not_read() {
    run(async {
        let calls = calls(Limits {
            write_timeout: Some(Duration::from_millis(500)),
            ..Limits::default()
        });
        let client = connect(serve(&calls)).await;
        let sent = send_hello(&client, STREAM).await;
        let call = take(&calls).await;
        call.write(b"first").unwrap();
        let mut answer = sent.response.await.unwrap().into_body();
        let first = answer.data().await.unwrap().unwrap();
        answer.flow_control().release_capacity(first.len()).unwrap();
        // From here on time passes only while nothing else can happen.
        tokio::time::pause();
        sleep(Duration::from_millis(1_500)).await;
        assert!(call.is_open(), "silence");
        let _ = call.write(&vec![0; 400 << 10]);
        for _ in 0..8 {
            let mut read = 0;
            while read < 40 << 10 {
                read += answer.data().await.unwrap().unwrap().len();
            }
            answer.flow_control().release_capacity(read).unwrap();
            sleep(Duration::from_millis(200)).await;
        }
        assert!(call.is_open(), "a slow reader");
    });
}
