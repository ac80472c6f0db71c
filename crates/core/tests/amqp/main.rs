//! The AMQP client against a real broker: `AMQP_URL`, and `AMQPS_URL` with `TLS_CA_FILE`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cancellation;
#[path = "../../src/cancellation_tests.rs"]
#[allow(dead_code)]
mod cancellation_tests;
mod connecting;
mod fake_broker;
mod hostile;
mod hostile_broker;
mod hostile_calls;
mod messaging;
#[path = "../support/peak_memory.rs"]
mod peak_memory;
mod recovery;
mod restarts;
mod scripted_broker;
mod support;
