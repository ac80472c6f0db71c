//! The PHP extension `weft`: converts in, calls `weft-core`, converts out.
//!
//! No function here suspends. A native call either answers at once or starts an operation and returns its id; the PHP
//! scheduler suspends the fiber and takes the outcome later. So no Rust frame is ever parked below a PHP one, and a
//! fiber that PHP destroys, or a fatal error that jumps over this code, finds nothing precious on the stack.

mod amqp;
mod amqp_table;
mod array;
mod bus;
mod c;
mod call_stats;
mod caller;
mod convert;
mod failure;
mod grpc;
mod grpc_client;
mod hooks;
mod http;
mod lifecycle;
mod metrics;
mod os;
mod outcome;
mod output;
mod pool;
mod process;
mod protobuf;
mod realms;
mod runtime;
mod sql;
mod sql_copy;
mod sql_failure;
mod sql_listener;
mod sql_places;
mod sql_plain;
mod sql_values;
mod stack;
mod text;
mod workers;
mod zend;

use ext_php_rs::prelude::*;

#[php_module]
pub fn get_module(module: ModuleBuilder) -> ModuleBuilder {
    let module = module
        .name("weft")
        .startup_function(lifecycle::startup)
        .request_startup_function(lifecycle::request_startup)
        .request_shutdown_function(lifecycle::request_shutdown);
    let module = runtime::register(module);
    let module = output::register(module);
    let module = hooks::register(module);
    let module = pool::register(module);
    let module = sql::register(module);
    let module = sql_copy::register(module);
    let module = sql_listener::register(module);
    let module = amqp::register(module);
    let module = http::register(module);
    let module = grpc::register(module);
    let module = grpc_client::register(module);
    let module = bus::register(module);
    let module = protobuf::register(module);
    let module = metrics::register(module);
    workers::register(module)
}
