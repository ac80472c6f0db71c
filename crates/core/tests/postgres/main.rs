//! The PostgreSQL client against a real server, named by `DATABASE_URL`.

mod batches;
mod cancellation;
mod connecting;
mod fake_server;
mod streaming;
mod support;
mod transactions;
mod values;
