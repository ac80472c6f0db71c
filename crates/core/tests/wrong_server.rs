//! A DSN that leads to a server of another protocol: the error names both. Against servers that say one thing, then against those of
//! `scripts/services`.

// Clippy exempts the tests themselves, not what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use weft_core::amqp;
use weft_core::pool::PoolOptions;
use weft_core::sql::{Database, Hooks, Statement};

#[path = "support/local.rs"]
mod local;

use local::{LIMIT, run};

/// What becomes of a connection to this address.
async fn failure(scheme: &str, address: &str, options: &str) -> String {
    let dsn = format!("{scheme}://app:secret@{address}/db?{options}");
    let message = match scheme {
        "amqp" => {
            let connection = amqp::Connection::connect(amqp::Config::parse(&dsn).unwrap()).await;
            connection.err().unwrap().to_string()
        }
        _ => {
            let database = Database::open(&dsn, PoolOptions::default(), Hooks::default());
            let database = database.unwrap().await.unwrap();
            let selected = database.execute(Statement::new("SELECT 1", vec![])).await;
            let error = selected.unwrap_err().to_string();
            database.close().await.unwrap();
            error
        }
    };
    assert!(message.contains(address), "{message}");
    assert!(!message.contains("secret"), "{message}");
    message
}

/// A server that says this, at once or once it was asked. Returns its address.
fn server(says: &[u8], speaks_first: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let says = says.to_vec();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            socket.set_read_timeout(Some(LIMIT)).unwrap();
            let asked =
                |socket: &mut std::net::TcpStream| matches!(socket.read(&mut [0; 1024]), Ok(1..));
            if (speaks_first || asked(&mut socket)) && socket.write_all(&says).is_ok() {
                // Until the client leaves.
                while asked(&mut socket) {}
            }
        }
    });
    address
}

/// MySQL's greeting with this length in its first byte.
fn mysql_greeting(length: u8) -> Vec<u8> {
    let mut packet = vec![length, 0, 0, 0, 10];
    packet.extend_from_slice(b"5.5.5-10.11.6-MariaDB\0");
    packet.resize(4 + usize::from(length), b'x');
    packet
}

#[test]
fn a_client_of_postgresql_names_the_server_that_is_none() {
    run(async {
        let mysql = "it answered as MySQL or MariaDB (5.5.5-10.11.6-MariaDB).";
        let http = "it answered as an HTTP server (HTTP/1.1 400 Bad Request).";
        let http_says: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
        let mut cases = vec![
            (server(http_says, false), http),
            (
                server(b"AMQP\0\0\x09\x01", false),
                "it answered as an AMQP broker.",
            ),
        ];
        // The lengths that are the first byte of an answer or a message of PostgreSQL too.
        for length in [99, b'N', b'S', b'R', b'E', b'A', b'v'] {
            cases.push((server(&mysql_greeting(length), true), mysql));
        }
        for sslmode in ["disable", "prefer", "require"] {
            for (address, answered) in &cases {
                let message = failure("postgres", address, &format!("sslmode={sslmode}")).await;
                let expected = format!("this is not a PostgreSQL server: {answered}");
                assert!(message.contains(&expected), "{sslmode}: {message}");
            }
        }
    });
}

#[test]
fn a_client_of_mysql_that_is_not_greeted_asks_whether_this_is_its_server() {
    run(async {
        let silent = server(b"", false);
        let message = failure("mysql", &silent, "connect_timeout=0.1").await;
        let asks =
            "no answer within 100ms: MySQL and MariaDB send a greeting first. Is this one of them?";
        assert!(message.contains(asks), "{message}");
        let redis = server(b"-DENIED Redis is running in protected mode\r\n", true);
        let message = failure("mysql", &redis, "").await;
        let named = "this is not a MySQL or MariaDB server: it answered as Redis.";
        assert!(message.contains(named), "{message}");
    });
}

#[test]
fn a_client_of_amqp_names_the_server_that_is_none() {
    run(async {
        for (says, speaks_first, answered) in [
            (
                &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
                false,
                "an HTTP server (HTTP/1.1 400 Bad Request).",
            ),
            (
                &mysql_greeting(99),
                true,
                "MySQL or MariaDB (5.5.5-10.11.6-MariaDB).",
            ),
            (b"-ERR unknown command\r\n", false, "Redis."),
        ] {
            let message = failure("amqp", &server(says, speaks_first), "").await;
            let expected = format!("this is not an AMQP broker: it answered as {answered}");
            assert!(message.contains(&expected), "{message}");
        }
        let message = failure("amqp", &server(b"", true), "connect_timeout=0.1").await;
        let says = "no answer within 100ms: a broker answers the protocol header at once, ";
        assert!(message.contains(says), "{message}");
        assert!(message.contains("Is this an AMQP port?"), "{message}");
    });
}

/// The address of a server that runs for the tests.
fn address_of(variable: &str) -> String {
    let url = std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} is not set: `make services` starts the servers"));
    let (_, rest) = url.split_once('@').unwrap();
    rest.split('/').next().unwrap().to_owned()
}

#[test]
fn real_servers_of_other_protocols_are_named() {
    run(async {
        let postgres = address_of("DATABASE_URL");
        let mysql = address_of("WEFT_MYSQL_DSN");
        let broker = address_of("AMQP_URL");
        let management = address_of("RABBITMQ_MANAGEMENT_URL");
        for (scheme, address, expected) in [
            ("postgres", &mysql, "it answered as MySQL or MariaDB ("),
            ("postgres", &broker, "it answered as an AMQP broker."),
            ("mysql", &postgres, "Is this one of them?"),
            ("mysql", &management, "Is this one of them?"),
            ("amqp", &mysql, "it answered as MySQL or MariaDB ("),
            ("amqp", &postgres, "is it an AMQP port"),
            ("amqp", &management, "Is this an AMQP port?"),
        ] {
            // Bounds only the waits for servers that say nothing.
            let options = match expected {
                "Is this one of them?" | "Is this an AMQP port?" => "connect_timeout=0.5",
                _ => "",
            };
            let message = failure(scheme, address, options).await;
            assert!(message.contains(expected), "{scheme}: {message}");
        }
    });
}
