//! `Weft\Native\GrpcChannel`, `GrpcClientCall`.

use std::path::PathBuf;

use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, Zval};

use weft_core::grpc::Encoding;
use weft_core::grpc::client::{Balancing, Channel, ChannelOptions, ClientCall, Request};
use weft_core::net::{ClientTls, Identity, PeerCheck};

use crate::amqp_table::binary;
use crate::array::values;
use crate::failure::Failure;
use crate::grpc::{bytes_of, closed, ended, fields, header_map, message_or_null};
use crate::outcome::Payload;
use crate::process::Process;
use crate::runtime::{seconds, start};

#[php_class]
#[php(name = "Weft\\Native\\GrpcChannel")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct GrpcChannel {
    channel: Channel,
}

#[php_impl]
impl GrpcChannel {
    pub fn open(
        servers: &ZendHashTable,
        is_round_robin: bool,
        tls: Option<&ZendHashTable>,
        options: &ZendHashTable,
    ) -> PhpResult<Self> {
        let time = |name: &str| options.get(name).and_then(Zval::double).map(seconds);
        let bytes = options.get("messageBytes").and_then(Zval::long);
        let window = options.get("streamWindow").and_then(Zval::long);
        let encoding = options.get("encoding").and_then(Zval::str);
        let options = ChannelOptions {
            servers: self::servers(servers)?,
            balancing: match is_round_robin {
                true => Balancing::RoundRobin,
                false => Balancing::PickFirst,
            },
            tls: tls.map(client_tls),
            connect_timeout: time("connectTimeout").unwrap_or_default(),
            message_bytes: bytes.map_or(0, |bytes| usize::try_from(bytes).unwrap_or(0)),
            encoding: encoding.and_then(Encoding::of_name),
            ping_interval: time("pingInterval"),
            ping_timeout: time("pingTimeout").unwrap_or_default(),
            stream_window: window
                .and_then(|bytes| u32::try_from(bytes).ok())
                .unwrap_or_default(),
        };
        let refused = |reason: String| Failure::new("grpc.tls", reason);
        Ok(Self {
            channel: Channel::new(options).map_err(refused)?,
        })
    }

    pub fn call(
        &self,
        method: String,
        metadata: &ZendHashTable,
        timeout: Option<f64>,
        attempts: i64,
        waits: bool,
    ) -> PhpResult<GrpcClientCall> {
        let request = Request {
            path: method,
            metadata: header_map(metadata)?,
            timeout: timeout.map(seconds),
            attempts: u32::try_from(attempts).unwrap_or(0),
            waits,
        };
        let (call, task) = ClientCall::new(&self.channel, request);
        Process::current()?.reactor.spawn_background(task);
        Ok(GrpcClientCall { call })
    }
}

/// `[[host, port], …]`
fn servers(given: &ZendHashTable) -> PhpResult<Vec<(String, u16)>> {
    let server = |given: &Zval| {
        let given = given.array()?;
        let port = given.get_index(1)?.long()?;
        Some((given.get_index(0)?.string()?, u16::try_from(port).ok()?))
    };
    let servers: Option<Vec<(String, u16)>> = values(given).map(server).collect();
    let wrong = || Failure::new("usage", "a server is [host, port], with a port up to 65535");
    Ok(servers.ok_or_else(wrong)?)
}

fn client_tls(given: &ZendHashTable) -> ClientTls {
    let text = |name: &str| given.get(name).and_then(Zval::string);
    let file = |name: &str| text(name).map(PathBuf::from);
    let identity = file("certFile").zip(file("keyFile"));
    ClientTls {
        ca_file: file("caFile"),
        check: match given.get("verify").and_then(Zval::bool) {
            Some(false) => PeerCheck::None,
            _ => PeerCheck::AuthorityAndName,
        },
        identity: identity.map(|(cert_file, key_file)| Identity {
            cert_file,
            key_file,
        }),
        server_name: text("serverName"),
        ..ClientTls::default()
    }
}

/// A call to a server, cancelled when it is dropped before its end.
#[php_class]
#[php(name = "Weft\\Native\\GrpcClientCall")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct GrpcClientCall {
    call: ClientCall,
}

#[php_impl]
impl GrpcClientCall {
    pub fn write(&self, message: &Zval) -> PhpResult<i64> {
        Process::refuse_after_fork()?;
        if self.call.write(bytes_of(message)?).map_err(closed)? {
            return Ok(0);
        }
        let room = self.call.room();
        start(async move { room.await.map(|()| Payload::Null).map_err(closed) })
    }

    pub fn end(&self) {
        self.call.end();
    }

    pub fn read(&self) -> PhpResult<i64> {
        let reading = self.call.read();
        start(async move {
            let message = reading.await.map_err(ended)?;
            Ok(Payload::build(move || {
                Ok(message_or_null(message.as_deref()))
            }))
        })
    }

    pub fn read_only(&self) -> PhpResult<i64> {
        let reading = self.call.read_only();
        start(async move {
            let message = reading.await.map_err(ended)?;
            Ok(Payload::build(move || Ok(binary(&message))))
        })
    }

    pub fn head(&self) -> PhpResult<Zval> {
        fields(&self.call.head())
    }

    pub fn trailers(&self) -> PhpResult<Zval> {
        fields(&self.call.trailers())
    }

    pub fn message_memory(&self) -> i64 {
        i64::try_from(self.call.message_memory()).unwrap_or(i64::MAX)
    }

    pub fn has_begun(&self) -> bool {
        self.call.has_begun()
    }

    pub fn pushback(&self) -> Option<i64> {
        let trailers = self.call.trailers();
        let value = trailers.get("grpc-retry-pushback-ms")?.to_str().ok();
        let milliseconds = value.and_then(|value| value.parse::<i32>().ok());
        Some(milliseconds.map_or(-1, |time| i64::from(time.max(-1))))
    }

    pub fn is_unprocessed(&self) -> bool {
        self.call.is_unprocessed()
    }

    pub fn cancel(&self) {
        self.call.cancel();
    }
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    module.class::<GrpcChannel>().class::<GrpcClientCall>()
}
