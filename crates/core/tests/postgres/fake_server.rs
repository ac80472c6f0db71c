//! Servers that say what no PostgreSQL would: no byte of theirs may cause a panic or a hang.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use weft_core::sql::postgres::{Config, Database};
use weft_core::sql::{Error, Value};

use crate::support::*;
use crate::tls::{self, Certificate};

const LET_IN: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

/// The answers to `Parse` and `Describe`, then to `Bind`, `Execute` of `SELECT 1`, both up to `ReadyForQuery`.
const DESCRIBED: &[u8] = b"1\0\0\0\x04t\0\0\0\x06\0\0T\0\0\0\x1a\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0Z\0\0\0\x05I";
const EXECUTED: &[u8] =
    b"2\0\0\0\x04D\0\0\0\x0e\0\x01\0\0\0\x04\0\0\0\x01C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";

/// Answers each request with the next of `answers`, then closes. Returns the DSN for it.
fn serve(answers: Vec<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut socket = accept(&listener);
        for answer in answers {
            if !read_request(&mut socket) || socket.write_all(&answer).is_err() {
                return;
            }
        }
    });
    format!("postgres://app:secret@127.0.0.1:{port}/db?sslmode=disable&connect_timeout=2")
}

fn accept(listener: &TcpListener) -> TcpStream {
    let (socket, _) = listener.accept().unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    socket
}

/// One write of the client.
fn read_request(socket: &mut impl Read) -> bool {
    matches!(socket.read(&mut [0; 64 * 1024]), Ok(length) if length > 0)
}

async fn select(answers: Vec<Vec<u8>>) -> Result<Vec<Vec<Value>>, Error> {
    let db = Database::open(Config::parse(&serve(answers)).unwrap(), pool(1));
    query(&db, "SELECT 1", vec![])
        .await
        .map(|result| result.rows)
}

#[test]
fn the_whole_conversation_is_understood() {
    run(async {
        let answers = vec![LET_IN.to_vec(), DESCRIBED.to_vec(), EXECUTED.to_vec()];
        assert_eq!(select(answers).await.unwrap(), vec![vec![Value::Int(1)]]);
    });
}

#[test]
fn an_answer_cut_anywhere_is_a_lost_connection() {
    run(async {
        for end in 0..DESCRIBED.len() {
            let cut = DESCRIBED[..end].to_vec();
            let error = select(vec![LET_IN.to_vec(), cut]).await.unwrap_err();
            assert!(
                matches!(error, Error::ConnectionLost { .. }),
                "{end}: {error}"
            );
        }
        for end in 0..EXECUTED.len() {
            let cut = EXECUTED[..end].to_vec();
            let answers = vec![LET_IN.to_vec(), DESCRIBED.to_vec(), cut];
            let error = select(answers).await.unwrap_err();
            assert!(
                matches!(error, Error::ConnectionLost { .. }),
                "{end}: {error}"
            );
        }
    });
}

#[test]
fn a_start_cut_anywhere_is_a_failure_to_connect() {
    run(async {
        for end in 0..LET_IN.len() {
            let error = select(vec![LET_IN[..end].to_vec()]).await.unwrap_err();
            assert!(matches!(error, Error::Connect { .. }), "{end}: {error}");
        }
    });
}

#[test]
fn no_wrong_byte_causes_a_panic_or_a_hang() {
    run(async {
        for answer in [DESCRIBED, EXECUTED] {
            for at in 0..answer.len() {
                for wrong in [0x00, 0xff, answer[at] ^ 0x01, b'Z', b'E'] {
                    let mut garbled = answer.to_vec();
                    garbled[at] = wrong;
                    let mut answers = vec![LET_IN.to_vec()];
                    if answer == EXECUTED {
                        answers.push(DESCRIBED.to_vec());
                    }
                    answers.push(garbled);
                    // The statement ends, in a result or an error: not every wrong byte can be told from a right one.
                    let _ = select(answers).await;
                }
            }
        }
    });
}

#[test]
fn a_peer_that_speaks_another_protocol_is_recognised() {
    run(async {
        let error = select(vec![b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()])
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("not the PostgreSQL protocol"),
            "{error}"
        );
        let length = b"D\xff\xff\xff\xff".to_vec();
        let error = select(vec![LET_IN.to_vec(), length]).await.unwrap_err();
        assert!(
            error.to_string().contains("not the PostgreSQL protocol"),
            "{error}"
        );
        let unasked = b"Z\0\0\0\x05I".to_vec();
        let error = select(vec![
            LET_IN.to_vec(),
            [DESCRIBED, &unasked].concat(),
            EXECUTED.to_vec(),
        ])
        .await;
        assert!(error.is_err());
    });
}

/// Serves one log-in with the given requests, one after each message of the client. Returns what the client sent after the
/// first, and what it made of it.
async fn answer_to(options: &str, requests: Vec<Vec<u8>>) -> (Vec<u8>, Error) {
    log_in(&format!("sslmode=disable&{options}"), requests, |socket| {
        socket
    })
    .await
}

/// `secured` makes the connection of what was accepted.
async fn log_in<S: Read + Write>(
    options: &str,
    requests: Vec<Vec<u8>>,
    secured: impl FnOnce(TcpStream) -> S + Send + 'static,
) -> (Vec<u8>, Error) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let mut socket = secured(accept(&listener));
        let mut sent = Vec::new();
        read_request(&mut socket);
        for request in requests {
            socket.write_all(&request).unwrap();
            let mut answer = vec![0; 1024];
            let length = socket.read(&mut answer).unwrap_or(0);
            sent.extend_from_slice(&answer[..length]);
        }
        sent
    });
    let dsn = format!("postgres://app:secret@127.0.0.1:{port}/db?{options}");
    let db = Database::open(Config::parse(&dsn).unwrap(), pool(1));
    let error = query(&db, "SELECT 1", vec![]).await.unwrap_err();
    db.close().await;
    (server.join().unwrap(), error)
}

const CLEARTEXT: &[u8] = b"R\0\0\0\x08\0\0\0\x03";
const MD5: &[u8] = b"R\0\0\0\x0c\0\0\0\x05salt";
const SCRAM: &[u8] = b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0";

#[test]
fn passwords_are_sent_the_way_the_server_asks_for() {
    run(async {
        let allowed = answer_to("require_auth=password,md5", vec![CLEARTEXT.to_vec()]).await;
        assert_eq!(allowed.0, b"p\0\0\0\x0bsecret\0");
        let (md5, _) = answer_to("", vec![MD5.to_vec()]).await;
        assert_eq!(&md5[..8], b"p\0\0\0\x28md5");
        let (scram, _) = answer_to("", vec![SCRAM.to_vec()]).await;
        assert!(scram.starts_with(b"p") && scram[5..].starts_with(b"SCRAM-SHA-256\0"));
        // Kerberos: nothing is sent.
        let kerberos = answer_to("", vec![b"R\0\0\0\x08\0\0\0\x02".to_vec()]).await;
        assert_eq!(kerberos.0, b"");
    });
}

#[test]
fn authentication_methods_that_the_client_does_not_allow_are_not_answered() {
    run(async {
        let starts = |rest: &[u8]| [SCRAM_CONTINUED, rest].concat();
        for (options, requests, cause) in [
            (
                "",
                vec![CLEARTEXT.to_vec()],
                "in clear text, but the connection has no TLS",
            ),
            ("", vec![CLEARTEXT.to_vec()], "require_auth=password"),
            (
                "require_auth=scram-sha-256",
                vec![MD5.to_vec()],
                "is not met: the server requests md5",
            ),
            (
                "require_auth=!md5",
                vec![MD5.to_vec()],
                "require_auth=!md5 is not met",
            ),
            (
                "require_auth=md5",
                vec![SCRAM.to_vec()],
                "the server requests scram-sha-256",
            ),
            (
                "require_auth=md5",
                vec![LET_IN.to_vec()],
                "the server requested no authentication",
            ),
            (
                "require_auth=!none",
                vec![LET_IN.to_vec()],
                "the server requested no authentication",
            ),
            (
                "channel_binding=require",
                vec![SCRAM.to_vec()],
                "the connection has no TLS",
            ),
            (
                "channel_binding=require",
                vec![MD5.to_vec()],
                "the server requests md5",
            ),
            (
                "channel_binding=require",
                vec![LET_IN.to_vec()],
                "did not use SCRAM with channel binding",
            ),
            (
                "",
                vec![b"Z\0\0\0\x05I".to_vec()],
                "ready without AuthenticationOk",
            ),
            ("", vec![starts(b"")], "skipped the start of SCRAM"),
            (
                "",
                vec![[LET_IN_AND, MD5].concat()],
                "after AuthenticationOk",
            ),
        ] {
            let (sent, error) = answer_to(options, requests).await;
            assert_eq!(sent, b"", "{options}: {error}");
            assert!(matches!(error, Error::Connect { .. }), "{error}");
            let error = error.to_string();
            assert!(error.contains(cause), "{options}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    });
}

#[test]
fn a_password_in_clear_text_is_sent_over_tls_only_to_a_server_that_is_verified() {
    run(async {
        let certificate = Certificate::make();
        let ask = async |options: &str| {
            let server = certificate.server();
            let secured = move |socket| tls::accept(socket, server);
            log_in(options, vec![CLEARTEXT.to_vec()], secured).await
        };
        for options in ["sslmode=prefer", "sslmode=require", "require_auth=!md5"] {
            let (sent, error) = ask(options).await;
            assert_eq!(sent, b"", "{options}: {error}");
            assert!(matches!(error, Error::Connect { .. }), "{error}");
            let error = error.to_string();
            for part in [
                "in clear text, but the server's certificate is not verified",
                "sslmode=verify-full",
                "require_auth=password",
            ] {
                assert!(error.contains(part), "{options}: {error}");
            }
            assert!(!error.contains("secret"), "{error}");
        }
        let trusted = format!("sslrootcert={}", certificate.file().display());
        for options in [
            format!("sslmode=verify-full&{trusted}"),
            format!("sslmode=verify-ca&{trusted}"),
            "sslmode=require&require_auth=password".to_owned(),
        ] {
            let (sent, error) = ask(&options).await;
            assert_eq!(sent, b"p\0\0\0\x0bsecret\0", "{options}: {error}");
        }
    });
}

/// `AuthenticationOk` and nothing behind it.
const LET_IN_AND: &[u8] = b"R\0\0\0\x08\0\0\0\0";
const SCRAM_CONTINUED: &[u8] = b"R\0\0\0\x12\0\0\0\x0br=x,s=eA==";

#[test]
fn a_server_that_lets_us_in_before_scram_has_ended_is_no_server_to_talk_to() {
    run(async {
        for second in [
            LET_IN.to_vec(),
            MD5.to_vec(),
            SCRAM.to_vec(),
            CLEARTEXT.to_vec(),
        ] {
            let (sent, error) = answer_to("", vec![SCRAM.to_vec(), second]).await;
            // The first message of SCRAM and nothing else.
            let length = u32::from_be_bytes(sent[1..5].try_into().unwrap()) as usize;
            assert_eq!(sent.len(), length + 1, "{text}", text = error);
            let text = error.to_string();
            assert!(
                text.contains("before it proved that it knows the password")
                    || text.contains("requests authentication a second time"),
                "{text}"
            );
        }
    });
}

#[test]
fn a_server_that_refuses_tls_is_left_when_tls_is_required() {
    run(async {
        for (answer, expected) in [
            (&b"N"[..], "does not offer TLS"),
            (b"X", "answered SSLRequest with an invalid byte"),
        ] {
            let dsn = serve(vec![answer.to_vec()]).replace("sslmode=disable", "sslmode=require");
            let db = Database::open(Config::parse(&dsn).unwrap(), pool(1));
            let error = query(&db, "SELECT 1", vec![]).await.unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    });
}
