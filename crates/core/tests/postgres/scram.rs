//! Servers that break SCRAM-SHA-256 (RFC 5802, RFC 7677). The client sends a proof from which the password could be guessed only by
//! trying, and connects only to a server that proves that it knows the password too.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use weft_core::sql::postgres::{Config, Connection};
use weft_core::sql::{ConnectFailure, Error};

use crate::support::run;

const PASSWORD: &[u8] = b"secret";
const SALT: &[u8] = b"salt";
/// Few, because a test derives hundreds of keys. More than one digit, so that a message that is cut has a valid number too.
const ITERATIONS: u32 = 40;

/// `AuthenticationOk` and `ReadyForQuery`.
const LET_IN: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

/// The messages of the server, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Sasl,
    Continue,
    Final,
}

const STEPS: [Step; 3] = [Step::Sasl, Step::Continue, Step::Final];

impl Step {
    /// Bytes of its message.
    fn length(self) -> usize {
        let body = match self {
            Self::Sasl => "SCRAM-SHA-256\0\0".len(),
            // The client's nonce has 24 characters.
            Self::Continue => 24 + "r=server,s=c2FsdA==,i=40".len(),
            Self::Final => "v=".len() + 44,
        };
        HEADER + body
    }
}

/// Bytes of the tag, the length and the code of an authentication request.
const HEADER: usize = 9;
/// Bytes of a tag and a length.
const FRAME: usize = 5;

/// The change that somebody between client and server makes to a message.
type Change = Box<dyn Fn(Step, Vec<u8>) -> Vec<u8> + Send>;

fn request(step: Step, body: &[u8]) -> Vec<u8> {
    let code = match step {
        Step::Sasl => 10_u32,
        Step::Continue => 11,
        Step::Final => 12,
    };
    framed(&[&code.to_be_bytes()[..], body].concat())
}

fn framed(body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&b"R"[..], &length, body].concat()
}

/// Whether the bytes are messages and nothing but messages.
fn is_whole(mut bytes: &[u8]) -> bool {
    while let Some((header, _)) = bytes.split_first_chunk::<FRAME>() {
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]);
        match bytes.get(1 + length as usize..) {
            Some(rest) if length >= 4 => bytes = rest,
            _ => return false,
        }
    }
    bytes.is_empty()
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// RFC 2104, with a key of at most one block.
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0; 64];
    block[..key.len()].copy_from_slice(key);
    let inner = sha256(&[&block.map(|byte| byte ^ 0x36)[..], message].concat());
    sha256(&[&block.map(|byte| byte ^ 0x5c)[..], &inner].concat())
}

/// `Hi()` of RFC 5802 §2.2.
fn salted_password() -> [u8; 32] {
    let mut last = hmac(PASSWORD, &[SALT, &[0, 0, 0, 1]].concat());
    let mut salted = last;
    for _ in 1..ITERATIONS {
        last = hmac(PASSWORD, &last);
        salted.iter_mut().zip(last).for_each(|(to, by)| *to ^= by);
    }
    salted
}

/// One message of the client, whole; `None` if it sends none.
fn read(socket: &mut TcpStream) -> Option<Vec<u8>> {
    let mut message = vec![0; 4096];
    let length = socket
        .read(&mut message)
        .ok()
        .filter(|length| *length > 0)?;
    message.truncate(length);
    Some(message)
}

/// A server that knows the password, and the one between it and the client.
fn serve(mut socket: TcpStream, change: &Change) -> Option<()> {
    // A client that waits for more is left after a while. One that has an answer is quicker.
    let patience = Some(Duration::from_millis(300));
    socket.set_read_timeout(patience).unwrap();
    read(&mut socket)?;
    let message = change(Step::Sasl, request(Step::Sasl, b"SCRAM-SHA-256\0\0"));
    socket.write_all(&message).ok()?;
    let first = is_whole(&message).then(|| read(&mut socket))??;
    // Behind the name of the mechanism, the length of the rest and the header of GS2.
    let first_bare = std::str::from_utf8(&first[FRAME + 14 + 4 + 3..]).unwrap();
    let nonce = first_bare.strip_prefix("n=,r=").unwrap();

    let challenge = format!("r={nonce}server,s={},i={ITERATIONS}", STANDARD.encode(SALT));
    let message = change(
        Step::Continue,
        request(Step::Continue, challenge.as_bytes()),
    );
    socket.write_all(&message).ok()?;
    let last = is_whole(&message).then(|| read(&mut socket))??;
    let last = std::str::from_utf8(&last[FRAME..]).unwrap();
    let (without_proof, _) = last.rsplit_once(",p=").unwrap();

    let auth_message = format!("{first_bare},{challenge},{without_proof}");
    let server_key = hmac(&salted_password(), b"Server Key");
    let signature = STANDARD.encode(hmac(&server_key, auth_message.as_bytes()));
    let message = request(Step::Final, format!("v={signature}").as_bytes());
    let message = [&change(Step::Final, message)[..], LET_IN].concat();
    socket.write_all(&message).ok()?;
    let _ = socket.shutdown(Shutdown::Write);
    while read(&mut socket).is_some() {}
    Some(())
}

async fn log_in(change: impl Fn(Step, Vec<u8>) -> Vec<u8> + Send + 'static) -> Result<(), Error> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let change: Change = Box::new(change);
    let server = std::thread::spawn(move || serve(listener.accept().unwrap().0, &change));
    let dsn =
        format!("postgres://app:secret@127.0.0.1:{port}/db?sslmode=disable&connect_timeout=30");
    let outcome = Connection::open(Config::parse(&dsn).unwrap()).await;
    let outcome = outcome.map(drop);
    server.join().unwrap();
    outcome
}

/// The error of a log-in that must not succeed, as text.
async fn refusal(what: &str, change: impl Fn(Step, Vec<u8>) -> Vec<u8> + Send + 'static) -> String {
    let error = log_in(change).await.expect_err(what);
    let Error::Connect {
        failure, message, ..
    } = &error
    else {
        panic!("{what}: {error}");
    };
    // Never the time limit: the client has what it needs to know, or the server has closed.
    let is_named = matches!(
        failure,
        ConnectFailure::Authentication | ConnectFailure::Protocol
    );
    assert!(is_named, "{what}: {failure:?}: {error}");
    assert!(!error.to_string().contains("secret"), "{what}: {error}");
    message.clone()
}

/// The same change of one message; the others stay as they are.
fn of(
    step: Step,
    change: impl Fn(Vec<u8>) -> Vec<u8> + Send + 'static,
) -> impl Fn(Step, Vec<u8>) -> Vec<u8> + Send + 'static {
    move |at, message| match at == step {
        true => change(message),
        false => message,
    }
}

#[test]
fn a_server_that_knows_the_password_is_connected_to() {
    run(async {
        let sound = |step: Step, message: Vec<u8>| {
            assert_eq!(message.len(), step.length(), "{step:?}");
            message
        };
        log_in(sound).await.unwrap();
    });
}

#[test]
fn a_server_that_lets_the_client_in_without_its_proof_is_left() {
    run(async {
        let message = refusal("no SASLFinal", of(Step::Final, |_| Vec::new())).await;
        assert!(
            message.contains(
                "before it proved that it knows the password (no AuthenticationSASLFinal)"
            ),
            "{message}"
        );
    });
}

#[test]
fn a_server_with_a_wrong_signature_is_left() {
    run(async {
        for signature in [
            STANDARD.encode([0; 32]),
            STANDARD.encode(hmac(b"another", b"message")),
            STANDARD.encode([]),
            STANDARD.encode([7; 31]),
            "no base64".to_owned(),
        ] {
            let body = format!("v={signature}");
            let change = of(Step::Final, move |_| request(Step::Final, body.as_bytes()));
            let message = refusal(&signature, change).await;
            assert!(
                message.contains("the server did not prove that it knows the password: "),
                "{signature}: {message}"
            );
        }
        let change = of(Step::Final, |_| request(Step::Final, b"e=invalid-proof"));
        let message = refusal("e=", change).await;
        assert!(message.contains("invalid-proof"), "{message}");
    });
}

#[test]
fn a_challenge_that_does_not_go_on_with_the_clients_nonce_is_not_answered() {
    run(async {
        for challenge in [
            "r=another,s=c2FsdA==,i=40",
            "r=,s=c2FsdA==,i=40",
            "s=c2FsdA==,i=40",
            "",
        ] {
            let change = of(Step::Continue, move |_| {
                request(Step::Continue, challenge.as_bytes())
            });
            let message = refusal(challenge, change).await;
            assert!(
                message.contains("the server's SCRAM challenge is not accepted: "),
                "{challenge}: {message}"
            );
        }
    });
}

#[test]
fn a_message_that_comes_out_of_turn_is_refused() {
    run(async {
        for step in STEPS {
            for instead in STEPS {
                if instead == step {
                    continue;
                }
                let what = format!("{instead:?} instead of {step:?}");
                let change = of(step, move |message| request(instead, &message[HEADER..]));
                refusal(&what, change).await;
            }
            let what = format!("{step:?} twice");
            refusal(&what, of(step, |message| [&message[..], &message].concat())).await;
        }
    });
}

#[test]
fn a_message_cut_anywhere_is_refused() {
    run(async {
        for step in STEPS {
            for kept in 0..step.length() {
                let what = format!("{step:?} cut to {kept} bytes");
                refusal(&what, of(step, move |message| message[..kept].to_vec())).await;
                let what = format!("{step:?} cut to {kept} bytes with their length");
                if let Some(body) = kept.checked_sub(FRAME) {
                    let change = of(step, move |message| framed(&message[FRAME..][..body]));
                    refusal(&what, change).await;
                }
            }
        }
    });
}

#[test]
fn a_message_with_more_than_belongs_to_it_is_refused() {
    run(async {
        for step in STEPS {
            for more in [&b"\0"[..], b",", b"x", b",x=y", b"=", b"\xff", &[b'A'; 300]] {
                let what = format!("{step:?} and {}", more.escape_ascii());
                let change = of(step, move |message| {
                    framed(&[&message[FRAME..], more].concat())
                });
                refusal(&what, change).await;
            }
        }
    });
}

#[test]
fn a_message_with_any_byte_replaced_is_refused() {
    run(async {
        for step in STEPS {
            for at in 0..step.length() {
                for by in [0x01, 0x20, 0x80] {
                    let what = format!("{step:?}, byte {at} ^ {by:#x}");
                    let change = of(step, move |mut message| {
                        message[at] ^= by;
                        message
                    });
                    refusal(&what, change).await;
                }
            }
        }
    });
}
