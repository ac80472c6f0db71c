//! `Weft\Native\HttpServer`

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, Zval};
use ext_php_rs::zend::ClassEntry;

use weft_core::http::{
    Event, ForwardedFields, Limits, RefusalReason, RefusalReport, Server, Service, TrustedProxies,
};
use weft_core::net::{Address, Identity, ListenError, ServerTls, TlsAcceptor, listen};

use super::long;
use super::request::HttpRequest;
use crate::array::values;
use crate::call_stats::push_call_stats;
use crate::convert::array_zval;
use crate::failure::Failure;
use crate::outcome::Payload;
use crate::process::Process;
use crate::runtime::{recurring, seconds, start};

/// The class of the library that extends ours: requests are made as instances of it.
const REQUEST: &str = "Weft\\Http\\Request";
/// Events of `next` for a request that was handed out before.
const GONE: i64 = 1;
const EXPIRED: i64 = 2;

#[php_class]
#[php(name = "Weft\\Native\\HttpServer")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct HttpServer {
    server: Rc<Server>,
    tls: RefCell<Vec<Rc<TlsAcceptor>>>,
}

#[php_impl]
impl HttpServer {
    pub fn open(
        limits: &ZendHashTable,
        proxies: &ZendHashTable,
        fields: &str,
        proxy_protocol: bool,
    ) -> PhpResult<Self> {
        let proxies = trusted_proxies(proxies, fields, proxy_protocol)?;
        let server = Server::behind(proxies, self::limits(limits));
        let process = Process::current()?;
        process.reactor.spawn_background(server.keep_time());
        Ok(Self {
            server: Rc::new(server),
            tls: RefCell::default(),
        })
    }

    pub fn listen(
        &self,
        address: &str,
        share_port: bool,
        certificates: &ZendHashTable,
        client_authorities: Option<String>,
        client_required: bool,
    ) -> PhpResult<String> {
        let process = Process::current()?;
        let address: Address = address.parse().map_err(listen_failure)?;
        let tls = tls(&address, certificates, client_authorities, client_required)?;
        self.tls.borrow_mut().extend(tls.clone());
        let listener = listen(&address, share_port).map_err(listen_failure)?;
        let address = listener.address().to_string();
        let accepting = self.server.accept(listener, tls);
        process.reactor.spawn_background(async move {
            // Only registering the socket can fail, with the epoll instance out of memory.
            let _ = accepting.await;
        });
        Ok(address)
    }

    pub fn reload_certificates(&self) -> PhpResult<()> {
        let mut all = self.tls.borrow().clone().into_iter();
        Ok(all.try_for_each(|tls| tls.reload().map_err(tls_failure))?)
    }

    pub fn next(&self, max: i64) -> PhpResult<Zval> {
        Process::refuse_after_fork()?;
        let max = usize::try_from(max).unwrap_or(0).max(1);
        let events = batch(&self.server, max)?;
        self.server.rearm();
        Ok(events)
    }

    pub fn arrivals(&self) -> PhpResult<i64> {
        let (op, announcer) = recurring()?;
        self.server.listen(move || announcer.announce());
        Ok(op)
    }

    pub fn handlers(&self) -> i64 {
        self.server.handlers() as i64
    }

    pub fn fit(&self, fibers: i64) {
        self.server.fit(usize::try_from(fibers).unwrap_or(1));
    }

    pub fn refused(&self) -> PhpResult<i64> {
        let refused = self.server.refusals();
        start(async move {
            let reports = refused.await;
            Ok(Payload::build(move || list(reports)))
        })
    }

    pub fn stop(&self) {
        self.server.stop();
    }

    pub fn drained(&self) -> PhpResult<i64> {
        let drained = self.server.drained();
        start(async move {
            drained.await;
            Ok(Payload::Null)
        })
    }

    pub fn abort(&self) {
        self.server.abort();
    }

    pub fn connections(&self) -> i64 {
        self.server.connections() as i64
    }

    pub fn peers(&self) -> PhpResult<Zval> {
        let mut peers = ZendHashTable::new();
        for (id, peer) in self.server.peers() {
            let mut row = ZendHashTable::new();
            row.push(peer.address.map(|address| address.to_string()))?;
            row.push(peer.is_tls)?;
            push_call_stats(&mut row, &peer.call_stats)?;
            peers.insert_at_index(id as i64, array_zval(row))?;
        }
        Ok(array_zval(peers))
    }

    pub fn in_flight(&self) -> i64 {
        self.server.in_flight() as i64
    }
}

impl HttpServer {
    /// Hands requests of another protocol to `service`.
    pub fn delegate(&self, service: Rc<dyn Service>) {
        self.server.delegate(service);
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// The events by request id: a request to answer, or [`GONE`] or [`EXPIRED`] for one that was handed out before.
fn batch(server: &Server, max: usize) -> PhpResult<Zval> {
    let class = ClassEntry::try_find(REQUEST).ok_or_else(|| {
        Failure::new(
            "runtime",
            format!("the class {REQUEST} is missing: is the PHP library loaded?"),
        )
    })?;
    let mut batch = ZendHashTable::new();
    for _ in 0..max {
        let (id, value) = match server.take() {
            None => break,
            Some(Event::Request(call)) => (call.id(), HttpRequest::new(call).into_object(class)?),
            Some(Event::Gone(id)) => (id, long(GONE)),
            Some(Event::Expired(id)) => (id, long(EXPIRED)),
        };
        batch.insert_at_index(id as i64, value)?;
    }
    Ok(array_zval(batch))
}

/// `[[reason, count, peer, detail], …]`
fn list(reports: Vec<RefusalReport<RefusalReason>>) -> PhpResult<Zval> {
    let mut list = ZendHashTable::with_capacity(reports.len() as u32);
    for report in reports {
        let mut row = ZendHashTable::with_capacity(4);
        row.push(report.reason.name())?;
        row.push(report.count as i64)?;
        row.push(report.peer.map(|peer| peer.to_string()))?;
        row.push(report.detail)?;
        list.push(array_zval(row))?;
    }
    Ok(array_zval(list))
}

/// `[[certificate file, key file], …]`; none is no TLS.
fn tls(
    address: &Address,
    certificates: &ZendHashTable,
    client_authorities: Option<String>,
    client_required: bool,
) -> PhpResult<Option<Rc<TlsAcceptor>>> {
    if certificates.is_empty() {
        return Ok(None);
    }
    if matches!(address, Address::Unix(_)) {
        let message = format!("{address} is a Unix socket: TLS needs TCP");
        return Err(Failure::new("usage", message).into());
    }
    let file = |pair: &Zval, index| {
        let file = pair.array()?.get_index(index)?.string()?;
        Some(PathBuf::from(file))
    };
    let identities = values(certificates)
        .map(|pair| {
            Some(Identity {
                cert_file: file(pair, 0)?,
                key_file: file(pair, 1)?,
            })
        })
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| Failure::new("usage", "a certificate is the names of two files"))?;
    let options = ServerTls {
        identities,
        client_authorities: client_authorities.map(PathBuf::from),
        client_required,
        protocols: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    let acceptor = TlsAcceptor::new(options).map_err(tls_failure)?;
    Ok(Some(Rc::new(acceptor)))
}

/// `None` without proxies. `unix` stands for the peers of a Unix socket.
fn trusted_proxies(
    ranges: &ZendHashTable,
    fields: &str,
    has_proxy_protocol: bool,
) -> PhpResult<Option<TrustedProxies>> {
    if ranges.is_empty() {
        return Ok(None);
    }
    let mut proxies = TrustedProxies {
        fields: match fields {
            "x-forwarded" => ForwardedFields::XForwarded,
            "forwarded" => ForwardedFields::Rfc7239,
            _ => ForwardedFields::None,
        },
        has_proxy_protocol,
        ..TrustedProxies::default()
    };
    for range in values(ranges) {
        match range.str().unwrap_or_default() {
            "unix" => proxies.trusts_unix = true,
            range => {
                let range = range.parse();
                let range = range.map_err(|reason: String| Failure::new("usage", reason))?;
                proxies.ranges.push(range);
            }
        }
    }
    Ok(Some(proxies))
}

fn tls_failure(reason: String) -> Failure {
    Failure::new("http.tls", reason)
}

fn limits(given: &ZendHashTable) -> Limits {
    let default = Limits::default();
    let count = |name: &str, default: usize| {
        let number = given.get(name).and_then(Zval::long);
        number.map_or(default, |number| usize::try_from(number).unwrap_or(0))
    };
    let time = |name: &str, default| {
        given
            .get(name)
            .and_then(Zval::double)
            .map_or(default, seconds)
    };
    let perhaps = |name: &str| given.get(name).and_then(Zval::double).map(seconds);
    Limits {
        connections: count("connections", default.connections),
        in_flight: count("inFlight", default.in_flight),
        queue: count("queue", default.queue),
        long_lived: count("longLived", default.long_lived),
        long_lived_per_connection: count(
            "longLivedPerConnection",
            default.long_lived_per_connection,
        ),
        client_share: given
            .get("clientShare")
            .and_then(Zval::double)
            .unwrap_or(default.client_share),
        header_count: count("headerCount", default.header_count),
        header_bytes: count("headerBytes", default.header_bytes),
        body_bytes: count("bodyBytes", default.body_bytes as usize) as u64,
        header_timeout: time("headerTimeout", default.header_timeout),
        body_timeout: time("bodyTimeout", default.body_timeout),
        min_body_rate: given
            .get("minBodyRate")
            .and_then(Zval::long)
            .map(|rate| u32::try_from(rate).unwrap_or(u32::MAX)),
        idle_timeout: time("idleTimeout", default.idle_timeout),
        write_timeout: time("writeTimeout", default.write_timeout),
        deadline: perhaps("deadline"),
        ping_interval: perhaps("pingInterval"),
        ping_timeout: time("pingTimeout", default.ping_timeout),
        min_ping_interval: perhaps("minPingInterval"),
        max_age: perhaps("maxAge"),
        age_grace: perhaps("ageGrace"),
        stream_window: u32::try_from(count("streamWindow", default.stream_window as usize))
            .unwrap_or(u32::MAX),
    }
}

fn listen_failure(error: ListenError) -> Failure {
    let kind = match error {
        ListenError::Address(_) => "http.address",
        ListenError::Refused { .. } => "http.listen",
    };
    Failure::new(kind, error.to_string())
}
