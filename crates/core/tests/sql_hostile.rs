//! Servers of PostgreSQL and MySQL that break their protocol: each message cut, lengthened, replaced, repeated, left out and
//! moved, at each step of a conversation. Every call ends without a panic, an error names the server, and a connection on which
//! the protocol was broken is never used again.

// Clippy exempts the tests themselves, not what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::LocalSet;
use weft_core::pool::PoolOptions;
use weft_core::sql::{Database, Error, Hooks, Statement};

const DEADLINE: Duration = Duration::from_secs(120);

/// What a server says after each write of its client.
type Script = Vec<Vec<Vec<u8>>>;

/// A conversation in which `SELECT 1` succeeds, and how a message of the protocol begins.
struct Protocol {
    scheme: &'static str,
    /// The server speaks first.
    greets: bool,
    script: Script,
    /// Where the length of a message is, and its value for so many bytes behind the header.
    patch_length: fn(&mut [u8], i64),
    header: usize,
    kinds: &'static [u8],
    /// Where the byte is that tells the kind of a message.
    kind_at: usize,
}

fn postgres() -> Protocol {
    let message = |tag: u8, body: &[u8]| {
        let length = (body.len() as u32 + 4).to_be_bytes();
        [&[tag][..], &length, body].concat()
    };
    let ready = message(b'Z', b"I");
    let column = b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
    Protocol {
        scheme: "postgres",
        greets: false,
        script: vec![
            vec![
                message(b'R', b"\0\0\0\0"),
                message(b'S', b"server_version\x0015\0"),
                message(b'K', b"\0\0\0\x07\0\0\0\x08"),
                ready.clone(),
            ],
            vec![
                message(b'1', b""),
                message(b't', b"\0\0"),
                message(b'T', column),
                ready.clone(),
            ],
            vec![
                message(b'2', b""),
                message(b'D', b"\0\x01\0\0\0\x04\0\0\0\x01"),
                message(b'C', b"SELECT 1\0"),
                ready,
            ],
        ],
        patch_length: |message, length| {
            message[1..5].copy_from_slice(&(length as u32).wrapping_add(4).to_be_bytes());
        },
        header: 5,
        kinds: b"RSKZ123tTnDCEINAGHWcdsv?",
        kind_at: 0,
    }
}

fn mysql() -> Protocol {
    let packet = |sequence: u8, body: &[u8]| {
        let length = (body.len() as u32).to_le_bytes();
        [&length[..3], &[sequence], body].concat()
    };
    let done = b"\0\0\0\x02\0\0\0";
    // The protocol of 4.1, databases, transactions, plugins, answers of any length, no EOF packets.
    let greeting = b"\x0a8.0.36\0\x07\0\0\0abcdefgh\0\x09\xa2\x2d\x02\0\x28\x01\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password\0";
    let text = |text: &[u8]| [&[text.len() as u8], text].concat();
    let column = |kind: u8| {
        let names = [&b"def"[..], b"", b"", b"", b"a", b"a"].map(text).concat();
        [&names[..], &[12, 45, 0, 11, 0, 0, 0, kind, 0, 0, 0, 0, 0]].concat()
    };
    let end = b"\xfe\0\0\x02\0\0\0";
    Protocol {
        scheme: "mysql",
        greets: true,
        script: vec![
            vec![packet(0, greeting)],
            vec![packet(2, done)],
            vec![
                packet(1, done),
                packet(1, b"\x01"),
                packet(2, &column(8)),
                packet(3, b"\x0816777216"),
                packet(4, end),
            ],
            vec![
                packet(1, b"\0\x01\0\0\0\x01\0\0\0\0\0\0"),
                packet(2, &column(8)),
            ],
            vec![
                packet(1, b"\x01"),
                packet(2, &column(8)),
                packet(3, b"\0\0\x01\0\0\0\0\0\0\0"),
                packet(4, end),
            ],
        ],
        patch_length: |packet, length| {
            packet[..3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
        },
        header: 4,
        kinds: b"\x00\x01\x02\x03\x04\x0a\x7f\xfa\xfb\xfc\xfd\xfe\xff",
        kind_at: 4,
    }
}

/// Every way to break one message of the script, with its name.
fn broken(protocol: &Protocol) -> Vec<(String, Script)> {
    let mut scripts = Vec::new();
    for (step, answer) in protocol.script.iter().enumerate() {
        for at in 0..answer.len() {
            let mut add = |what: String, change: &dyn Fn(&mut Vec<Vec<u8>>)| {
                let mut script = protocol.script.clone();
                change(&mut script[step]);
                // Then it closes: a server that falls silent costs the time that the caller gives it.
                script.truncate(step + 1);
                scripts.push((format!("step {step}, message {at}: {what}"), script));
            };
            let length = answer[at].len() - protocol.header;
            for cut in 0..answer[at].len() {
                add(format!("cut to {cut} bytes"), &|answer| {
                    answer[at].truncate(cut);
                    answer.truncate(at + 1);
                });
            }
            for wrong in [-4, -1, 0, 1, 60_000, 0xff_ffff, 0x3fff_fff0, 0xffff_ffff] {
                add(format!("length {wrong}"), &|answer| {
                    (protocol.patch_length)(&mut answer[at], wrong);
                });
            }
            for more in [1, 300] {
                add(format!("{more} bytes longer"), &|answer| {
                    answer[at].extend(std::iter::repeat_n(0xab, more));
                    (protocol.patch_length)(&mut answer[at], (length + more) as i64);
                });
            }
            for kind in protocol.kinds {
                add(format!("replaced by {kind:#x}"), &|answer| {
                    if let Some(place) = answer[at].get_mut(protocol.kind_at) {
                        *place = *kind;
                    }
                });
            }
            add("left out".to_owned(), &|answer| drop(answer.remove(at)));
            add("said twice".to_owned(), &|answer| {
                answer.insert(at, answer[at].clone());
            });
            add("said first".to_owned(), &|answer| {
                let message = answer.remove(at);
                answer.insert(0, message);
            });
        }
    }
    scripts
}

/// Plays the script to each client that connects, then closes. Returns the DSN and how many have connected.
fn serve(protocol: &Protocol, script: Script) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connected = Arc::new(AtomicUsize::new(0));
    let (count, greets) = (Arc::clone(&connected), protocol.greets);
    std::thread::spawn(move || {
        // The conversation, and one more for a statement after it.
        for _ in 0..2 {
            let Ok((mut socket, _)) = listener.accept() else {
                return;
            };
            count.fetch_add(1, Ordering::SeqCst);
            let limit = Some(Duration::from_secs(20));
            socket.set_read_timeout(limit).unwrap();
            for (step, answer) in script.iter().enumerate() {
                let has_heard =
                    greets && step == 0 || matches!(socket.read(&mut [0; 64 * 1024]), Ok(1..));
                if !has_heard || socket.write_all(&answer.concat()).is_err() {
                    break;
                }
            }
        }
    });
    let scheme = protocol.scheme;
    let dsn =
        format!("{scheme}://app:secret@127.0.0.1:{port}/db?sslmode=disable&connect_timeout=5");
    (dsn, connected)
}

async fn select(db: &Database) -> Result<(), Error> {
    db.execute(Statement::new("SELECT 1", vec![]))
        .await
        .map(drop)
}

async fn open(dsn: &str) -> Database {
    let pool = PoolOptions {
        size: 1,
        return_timeout: Duration::from_secs(1),
        ..PoolOptions::default()
    };
    Database::open(dsn, pool, Hooks::default())
        .unwrap()
        .await
        .unwrap()
}

async fn survives(protocol: &Protocol, what: &str, script: Script) {
    let (dsn, connected) = serve(protocol, script);
    let address = dsn.split(['@', '/']).nth(3).unwrap().to_owned();
    let db = open(&dsn).await;
    let outcome = select(&db).await;
    if let Err(error @ (Error::ConnectionLost { .. } | Error::Connect { .. })) = &outcome {
        let text = error.to_string();
        assert!(text.contains(&address), "{what}: {text}");
        assert!(!text.contains("secret"), "{what}: {text}");
        // A second connection is made for the next statement: the first is not used again.
        let before = connected.load(Ordering::SeqCst);
        if matches!(error, Error::ConnectionLost { .. }) {
            let _ = select(&db).await;
            assert!(connected.load(Ordering::SeqCst) > before, "{what}: {text}");
        }
    }
    let stats = db.stats().unwrap();
    assert_eq!(stats.waiting, 0, "{what}");
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let within = async { tokio::time::timeout(DEADLINE, test).await };
    LocalSet::new()
        .block_on(&runtime, within)
        .expect("it does not end");
}

#[test]
fn the_whole_conversation_is_understood() {
    for protocol in [postgres(), mysql()] {
        run(async {
            let (dsn, _) = serve(&protocol, protocol.script.clone());
            select(&open(&dsn).await).await.unwrap();
        });
    }
}

#[test]
fn nothing_that_a_postgres_server_says_does_harm() {
    let protocol = postgres();
    run(async {
        for (what, script) in broken(&protocol) {
            survives(&protocol, &what, script).await;
        }
    });
}

#[test]
fn nothing_that_a_mysql_server_says_does_harm() {
    let protocol = mysql();
    run(async {
        for (what, script) in broken(&protocol) {
            survives(&protocol, &what, script).await;
        }
    });
}
