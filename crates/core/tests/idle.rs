//! The memory that the server holds for a connection that has had its answer and is silent.

#![allow(unsafe_code, reason = "replaces the allocator")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/grpc.rs"]
#[allow(dead_code, reason = "a part of it is enough here")]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicIsize, Ordering};

use hyper::HeaderMap;
use support::UNARY;
use tokio::task::LocalSet;
use weft_core::grpc::{Event, Limits, Status};

const CONNECTIONS: usize = 200;
/// h2 makes three buffers for a connection, of 16, 8 and 4 KiB, which cannot be had smaller, and touches the beginning of each.
/// Everything else is ours to keep small.
const BUFFERS: isize = (16 + 8 + 4) << 10;
const REST: isize = 9 << 10;

/// Live allocations of the threads that are counted, by size.
struct Counting;

const LARGEST: usize = 32 << 10;
static LIVE: [AtomicIsize; LARGEST + 1] = [const { AtomicIsize::new(0) }; LARGEST + 1];

thread_local! {
    static IS_COUNTED: Cell<bool> = const { Cell::new(false) };
}

fn count(size: usize, by: isize) {
    if IS_COUNTED.try_with(Cell::get).unwrap_or(false) {
        LIVE[size.min(LARGEST)].fetch_add(by, Ordering::Relaxed);
    }
}

// SAFETY: everything is the system's allocator, and counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn sizes() -> Vec<isize> {
    LIVE.iter()
        .map(|live| live.load(Ordering::Relaxed))
        .collect()
}

#[test]
fn an_idle_connection_of_grpc_holds_little_more_than_the_buffers_of_h2() {
    IS_COUNTED.set(true);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let before_and_after = LocalSet::new().block_on(&runtime, async {
        let address = serve();
        let warm = open(address, 10).await;
        let before = sizes();
        let idle = open(address, CONNECTIONS).await;
        let after = sizes();
        drop((warm, idle));
        (before, after)
    });
    IS_COUNTED.set(false);
    let (before, after) = before_and_after;
    let mut bytes = 0;
    let mut table = String::new();
    for size in 0..=LARGEST {
        let live = after[size] - before[size];
        bytes += live * size as isize;
        if live * size as isize >= CONNECTIONS as isize * 16 {
            let each = live as f64 / CONNECTIONS as f64;
            writeln!(table, "{size:>6} bytes: {each:.2} of them a connection").unwrap();
        }
    }
    let each = bytes / CONNECTIONS as isize;
    println!("{each} bytes a connection\n{table}");
    assert!(each <= BUFFERS + REST, "{each} bytes a connection\n{table}");
}

fn serve() -> SocketAddr {
    let calls = support::calls(Limits::default(), []);
    let address = support::serve(&calls);
    tokio::task::spawn_local(async move {
        loop {
            calls.next().await;
            while let Some(event) = calls.take() {
                if let Event::Request(call) = event {
                    let _ = call.write(&call.take_message().unwrap_or_default());
                    call.finish(&Status::OK, HeaderMap::new());
                }
            }
        }
    });
    address
}

/// By a thread that is not counted.
async fn open(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    let (done, opened) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let sockets = (0..count).map(|_| answered(address)).collect();
        let _ = done.send(sockets);
    });
    let sockets: Vec<TcpStream> = opened.await.unwrap();
    // The server has work to do after the last byte.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    sockets
}

/// Written out by hand, so that nothing is left but what the server holds.
fn answered(address: SocketAddr) -> TcpStream {
    let mut socket = TcpStream::connect(address).unwrap();
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", UNARY),
        (":authority", "idle"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let mut block = Vec::new();
    for (name, value) in fields {
        block.extend_from_slice(&[0, name.len() as u8]);
        block.extend_from_slice(name.as_bytes());
        block.push(value.len() as u8);
        block.extend_from_slice(value.as_bytes());
    }
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    for (kind, flags, stream, payload) in
        [(4, 0, 0, &[][..]), (1, 4, 1, &block), (0, 1, 1, &[0; 5])]
    {
        bytes.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
        bytes.extend_from_slice(&[kind, flags, 0, 0, 0, stream]);
        bytes.extend_from_slice(payload);
    }
    socket.write_all(&bytes).unwrap();
    // The trailers are a HEADERS frame that ends the stream.
    let mut answer = Vec::new();
    while !answer.windows(6).any(|bytes| bytes == [1, 5, 0, 0, 0, 1]) {
        let mut chunk = [0; 1024];
        let length = socket.read(&mut chunk).unwrap();
        assert!(length > 0, "the server has hung up after {answer:?}");
        answer.extend_from_slice(&chunk[..length]);
    }
    socket
}
