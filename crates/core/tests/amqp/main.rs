//! The AMQP client against a real broker: `AMQP_URL`, and `AMQPS_URL` with `TLS_CA_FILE`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod connecting;
mod hostile;
mod messaging;
mod recovery;
mod support;
