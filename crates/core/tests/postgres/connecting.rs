use std::time::{Duration, Instant};

use weft_core::sql::postgres::{BindingMode, Config, Connection, Database};
use weft_core::sql::{ConnectFailure, Endpoint, Error, SslMode, Value};

use crate::support::*;
use crate::tls::{Certificate, man_in_the_middle};

async fn failure(config: Config) -> (ConnectFailure, String) {
    let db = Database::open(config, pool(1));
    match query(&db, "SELECT 1", vec![]).await.unwrap_err() {
        Error::Connect {
            failure, message, ..
        } => (failure, message),
        other => panic!("not a failure to connect: {other}"),
    }
}

fn altered(alter: impl FnOnce(&mut Config)) -> Config {
    let mut config = config();
    alter(&mut config);
    config
}

/// `DATABASE_URL` with other options.
fn with(options: &str) -> Config {
    Config::parse(&format!("{}?{options}", url())).unwrap()
}

#[test]
fn a_password_is_proved_by_scram() {
    run(async {
        let db = Database::open(with("application_name=weft%20test"), pool(1));
        let name = scalar(
            &db,
            "SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()",
        )
        .await;
        assert_eq!(name, text("weft test"));
        let stored = scalar(&db, "SELECT current_setting('password_encryption')").await;
        assert_eq!(stored, text("scram-sha-256"));
    });
}

#[test]
fn wrong_credentials_say_so_without_repeating_the_password() {
    run(async {
        let (cause, message) =
            failure(altered(|c| c.connect.password = Some("hunter2".into()))).await;
        assert_eq!(cause, ConnectFailure::Authentication);
        assert!(
            message.contains("28P01") && !message.contains("hunter2"),
            "{message}"
        );
        let (cause, message) = failure(altered(|c| c.connect.password = None)).await;
        assert_eq!(cause, ConnectFailure::Authentication);
        assert!(message.contains("the DSN has none"), "{message}");
        let (cause, message) =
            failure(altered(|c| c.connect.database = Some("no_such".into()))).await;
        assert_eq!(cause, ConnectFailure::Database);
        assert!(message.contains("\"no_such\" does not exist"), "{message}");
    });
}

#[test]
fn an_address_where_nobody_is_says_so() {
    run(async {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = closed.local_addr().unwrap().port();
        drop(closed);
        let nobody = format!("postgres://a:b@127.0.0.1:{port}/d");
        let (cause, _) = failure(Config::parse(&nobody).unwrap()).await;
        assert_eq!(cause, ConnectFailure::Refused);
        let (cause, _) =
            failure(Config::parse("postgres://a@/d?host=/no/such/directory").unwrap()).await;
        assert_eq!(cause, ConnectFailure::Refused);
        let (cause, _) =
            failure(Config::parse("postgres://a@no-such-host.invalid/d").unwrap()).await;
        assert_eq!(cause, ConnectFailure::Dns);
    });
}

#[test]
fn a_server_that_does_not_answer_is_given_up_after_the_connect_timeout() {
    run(async {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let dsn = format!("postgres://a:b@127.0.0.1:{port}/d?connect_timeout=0.1");
        let started = Instant::now();
        let (cause, message) = failure(Config::parse(&dsn).unwrap()).await;
        assert_eq!(cause, ConnectFailure::Timeout);
        assert!(message.contains("100ms"), "{message}");
        assert!(started.elapsed() < Duration::from_secs(60));
    });
}

#[test]
fn the_unix_socket_works_as_well() {
    run(async {
        let db = database(1);
        let Value::Text(directories) =
            scalar(&db, "SELECT current_setting('unix_socket_directories')").await
        else {
            panic!("unix_socket_directories is no text");
        };
        let Value::Text(port) = scalar(&db, "SELECT current_setting('port')").await else {
            panic!("port is no text");
        };
        // A server may have been told to open none.
        let Some(directory) = directories
            .split(", ")
            .find(|directory| directory.starts_with('/'))
        else {
            return;
        };
        let config = config();
        let dsn = format!(
            "postgres://{}:{}@/{}?host={directory}&port={port}&sslmode=require",
            config.connect.user,
            config.connect.password.as_deref().unwrap(),
            config.connect.database_or_user()
        );
        let db = Database::open(Config::parse(&dsn).unwrap(), pool(1));
        assert_eq!(
            scalar(&db, "SELECT inet_client_addr() IS NULL").await,
            Value::Bool(true)
        );
    });
}

#[test]
fn options_of_the_session_reach_the_server() {
    run(async {
        let db = Database::open(with("options=-c%20work_mem%3D7MB"), pool(1));
        assert_eq!(scalar(&db, "SHOW work_mem").await, text("7MB"));
    });
}

#[test]
fn tls_is_used_when_asked_for_and_the_server_is_who_it_claims_to_be() {
    run(async {
        let encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        let full = Config::parse(&tls_url()).unwrap();
        let db = Database::open(full.clone(), pool(1));
        assert_eq!(scalar(&db, encrypted).await, Value::Bool(true));
        for (options, expected) in [("sslmode=disable", false), ("sslmode=require", true)] {
            let db = Database::open(with(options), pool(1));
            assert_eq!(
                scalar(&db, encrypted).await,
                Value::Bool(expected),
                "{options}"
            );
        }
    });
}

#[test]
fn scram_is_bound_to_the_tls_connection_where_that_is_wanted() {
    run(async {
        for (mode, works) in [("disable", true), ("prefer", true), ("require", true)] {
            let dsn = format!(
                "{}&channel_binding={mode}&require_auth=scram-sha-256",
                tls_url()
            );
            let outcome = Connection::open(Config::parse(&dsn).unwrap()).await;
            assert_eq!(outcome.is_ok(), works, "{mode}");
        }
        let plain = url().replace("sslmode=", "ignored=");
        let separator = if plain.contains('?') { '&' } else { '?' };
        let dsn = format!("{plain}{separator}sslmode=disable&channel_binding=require");
        let error = Connection::open(Config::parse(&dsn).unwrap()).await;
        let error = error.err().unwrap().to_string();
        assert!(
            error.contains("channel_binding=require is not met"),
            "{error}"
        );
    });
}

#[test]
fn a_proxy_with_another_certificate_is_noticed_where_scram_is_bound() {
    run(async {
        let certificate = Certificate::make();
        let port = man_in_the_middle(&certificate).await;
        let through = |mode| {
            altered(|c| {
                let host = "127.0.0.1".to_owned();
                c.connect.endpoint = Endpoint::Tcp { host, port };
                c.connect.ssl_mode = SslMode::Require;
                c.channel_binding = mode;
            })
        };
        // Without the binding neither side notices that the proxy reads what they say.
        let db = Database::open(through(BindingMode::Disable), pool(1));
        assert_eq!(scalar(&db, "SELECT 1").await, Value::Int(1));
        for mode in [BindingMode::Prefer, BindingMode::Require] {
            let (cause, message) = failure(through(mode)).await;
            assert_eq!(cause, ConnectFailure::Authentication, "{message}");
            assert!(message.contains("channel binding"), "{message}");
        }
    });
}

#[test]
fn a_large_exchange_and_a_cancellation_work_over_tls() {
    run(async {
        let db = Database::open(Config::parse(&tls_url()).unwrap(), pool(1));
        let big = "x".repeat(4 * 1024 * 1024);
        let result = query(&db, "SELECT $1::text", vec![text(&big)])
            .await
            .unwrap();
        assert_eq!(result.rows, vec![vec![text(&big)]]);
        let sleeping = tokio::time::timeout(
            Duration::from_millis(100),
            query(&db, "SELECT pg_sleep(30)", vec![]),
        );
        assert!(sleeping.await.is_err());
        assert_eq!(scalar(&db, "SELECT 1").await, Value::Int(1));
        assert_eq!(db.stats().created, 1);
    });
}

#[test]
fn a_certificate_that_is_not_trusted_or_of_another_host_is_refused() {
    run(async {
        let mut untrusted = Config::parse(&tls_url()).unwrap();
        untrusted.connect.ssl_root_cert = None;
        let (cause, message) = failure(untrusted).await;
        assert_eq!(cause, ConnectFailure::Tls, "{message}");
        let mut missing = Config::parse(&tls_url()).unwrap();
        missing.connect.ssl_root_cert = Some("/no/such/file.pem".into());
        let (cause, message) = failure(missing).await;
        assert_eq!(cause, ConnectFailure::Tls);
        assert!(message.contains("/no/such/file.pem"), "{message}");
        // The address is right and in no certificate: 127.0.0.2 is this machine as well.
        let other_name = tls_url().replace("localhost", "127.0.0.2");
        let listens_there =
            std::net::TcpStream::connect(("127.0.0.2", port_of(&tls_url()))).is_ok();
        if listens_there {
            let (cause, message) = failure(Config::parse(&other_name).unwrap()).await;
            assert_eq!(cause, ConnectFailure::Tls, "{message}");
        }
    });
}

fn port_of(url: &str) -> u16 {
    let digits = url.rsplit(':').next().unwrap();
    let end = digits.find('/').unwrap();
    digits[..end].parse().unwrap()
}
