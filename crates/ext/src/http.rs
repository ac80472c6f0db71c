//! `Weft\Native\HttpServer`, `HttpRequest`, `HttpStream`.

mod encoder;
mod file;
mod form;
mod socket;

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use bytes::Bytes;
use ext_php_rs::convert::IntoZval;
use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendClassObject, ZendHashTable, ZendStr, Zval};
use ext_php_rs::zend::ClassEntry;

use weft_core::http::header::{HeaderName, HeaderValue};
use weft_core::http::{
    Body, BodyError, BodyWriter, Broken, Call, Event, HeaderMap, Limits, Response, Server, Service,
    StatusCode, Version,
};
use weft_core::net::{Address, Identity, ListenError, ServerTls, TlsAcceptor, listen};

use crate::amqp_table::binary;
use crate::convert::array_zval;
use crate::failure::Failure;
use crate::metrics::Histogram;
use crate::process::Process;
use crate::runtime::{Payload, seconds, start};

pub use encoder::HttpEncoder;
pub use file::{HttpFile, HttpFolder};
pub use form::HttpUpload;
pub use socket::HttpSocket;

/// The class of the library that extends ours: requests are made as instances of it.
const REQUEST: &str = "Weft\\Http\\Request";
/// What `next` says of a request instead of handing it out.
const GONE: i64 = 1;
const EXPIRED: i64 = 2;
/// A comment, which clients ignore.
const HEARTBEAT: &[u8] = b":\n\n";

#[php_class]
#[php(name = "Weft\\Native\\HttpServer")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct HttpServer {
    server: Server,
    tls: RefCell<Vec<Rc<TlsAcceptor>>>,
}

#[php_impl]
impl HttpServer {
    pub fn open(limits: &ZendHashTable) -> PhpResult<Self> {
        let server = Server::new(self::limits(limits));
        let process = Process::current()?;
        process.reactor.spawn_background(server.keep_time());
        Ok(Self {
            server,
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
        for tls in &*self.tls.borrow() {
            tls.reload().map_err(tls_failure)?;
        }
        Ok(())
    }

    pub fn next(&self, max: i64) -> PhpResult<Zval> {
        Process::refuse_after_fork()?;
        let max = usize::try_from(max).unwrap_or(0).max(1);
        if self.server.has_events() {
            return batch(&self.server, max);
        }
        let next = self.server.next();
        let server = self.server.clone();
        let op = start(async move {
            next.await;
            Ok(Payload::build(move || batch(&server, max)))
        })?;
        let mut zval = Zval::new();
        zval.set_long(op);
        Ok(zval)
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

/// What has happened by now, by request id: a request to answer, or [`GONE`] or [`EXPIRED`] for one handed out before.
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
            Some(Event::Request(call)) => (call.id(), HttpRequest { call }.into_object(class)?),
            Some(Event::Gone(id)) => (id, long(GONE)),
            Some(Event::Expired(id)) => (id, long(EXPIRED)),
        };
        batch.insert_at_index(id as i64, value)?;
    }
    Ok(array_zval(batch))
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
    let identities = certificates
        .values()
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

fn tls_failure(reason: String) -> Failure {
    Failure::new("http.tls", reason)
}

/// A new object of a class of ours.
fn object<T: ext_php_rs::class::RegisteredClass>(object: T) -> PhpResult<Zval> {
    Ok(ZendClassObject::new(object).into_zval(false)?)
}

fn long(number: i64) -> Zval {
    let mut zval = Zval::new();
    zval.set_long(number);
    zval
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
    Limits {
        connections: count("connections", default.connections),
        in_flight: count("inFlight", default.in_flight),
        queue: count("queue", default.queue),
        header_count: count("headerCount", default.header_count),
        header_bytes: count("headerBytes", default.header_bytes),
        body_bytes: count("bodyBytes", default.body_bytes as usize) as u64,
        header_timeout: time("headerTimeout", default.header_timeout),
        body_timeout: time("bodyTimeout", default.body_timeout),
        idle_timeout: time("idleTimeout", default.idle_timeout),
        write_timeout: time("writeTimeout", default.write_timeout),
        deadline: given.get("deadline").and_then(Zval::double).map(seconds),
    }
}

/// Not final: `Weft\Http\Request` adds what has to wait.
#[php_class]
#[php(name = "Weft\\Native\\HttpRequest")]
pub struct HttpRequest {
    call: Rc<Call>,
}

#[php_impl]
impl HttpRequest {
    pub fn id(&self) -> i64 {
        self.call.id() as i64
    }

    pub fn method(&self) -> Zval {
        let method = &self.call.head().method;
        text(method.as_str())
    }

    pub fn path(&self) -> Zval {
        text(self.call.head().uri.path())
    }

    pub fn query_string(&self) -> Zval {
        text(self.call.head().uri.query().unwrap_or_default())
    }

    pub fn scheme(&self) -> &'static str {
        if self.call.peer().is_tls {
            "https"
        } else {
            "http"
        }
    }

    pub fn host(&self) -> Zval {
        let head = self.call.head();
        match head.uri.authority() {
            Some(authority) => text(authority.as_str()),
            None => joined(&head.headers, "host").unwrap_or_else(|| text("")),
        }
    }

    pub fn protocol(&self) -> &'static str {
        match self.call.head().version {
            Version::HTTP_2 => "2",
            Version::HTTP_10 => "1.0",
            _ => "1.1",
        }
    }

    pub fn client_address(&self) -> Option<String> {
        self.call
            .peer()
            .address
            .map(|address| address.ip().to_string())
    }

    pub fn client_certificate(&self) -> Option<Zval> {
        self.call.peer().certificate.as_deref().map(binary)
    }

    pub fn client_port(&self) -> Option<i64> {
        self.call
            .peer()
            .address
            .map(|address| address.port().into())
    }

    pub fn header(&self, name: &str) -> Option<Zval> {
        joined(&self.call.head().headers, name)
    }

    pub fn headers(&self) -> PhpResult<Zval> {
        fields(&self.call.head().headers)
    }

    pub fn trailers(&self) -> PhpResult<Zval> {
        fields(&self.call.trailers().unwrap_or_default())
    }

    pub fn timed_by(&self, histogram: &Histogram) {
        self.call.time(histogram.instrument());
    }

    pub fn is_open(&self) -> bool {
        self.call.is_open()
    }

    pub fn read_body(&self) -> PhpResult<Zval> {
        Process::refuse_after_fork()?;
        if let Some(whole) = self.call.whole_body() {
            return Ok(binary(&whole.map_err(body_failure)?));
        }
        let reading = self.call.read_body();
        Ok(long(start(async move {
            let whole = reading.await.map_err(body_failure)?;
            Ok(Payload::build(move || Ok(binary(&whole))))
        })?))
    }

    pub fn next_piece(&self) -> PhpResult<i64> {
        let reading = self.call.next_piece();
        start(async move {
            let piece = reading.await.map_err(body_failure)?;
            Ok(Payload::build(move || Ok(binary(&piece))))
        })
    }

    pub fn respond(&self, status: i64, headers: &ZendHashTable, body: &Zval) -> PhpResult<bool> {
        Process::refuse_after_fork()?;
        let body = body
            .zend_str()
            .ok_or_else(|| Failure::new("usage", "the body of a response must be a string"))?;
        let body = Bytes::copy_from_slice(body.as_bytes());
        Ok(self.call.respond(response(status, headers, body.into())?))
    }

    pub fn respond_file(
        &self,
        status: i64,
        headers: &ZendHashTable,
        file: &HttpFile,
    ) -> PhpResult<bool> {
        Process::refuse_after_fork()?;
        let (status, headers) = (final_status(status)?, header_map(headers)?);
        let response = file.file.answer(self.call.head(), status, headers);
        let response = response.map_err(|error| {
            let message = format!("a file cannot be sent: {error}");
            Failure::new("http.file.unreadable", message)
        })?;
        Ok(self.call.respond(response))
    }

    pub fn read_form(&self, limits: &ZendHashTable, folder: &Zval) -> PhpResult<i64> {
        Process::refuse_after_fork()?;
        form::read(&self.call, limits, folder)
    }

    pub fn converse(
        &self,
        subprotocol: Option<String>,
        message_bytes: i64,
        ping_interval: f64,
    ) -> PhpResult<Option<HttpSocket>> {
        Process::refuse_after_fork()?;
        socket::open(&self.call, subprotocol, message_bytes, ping_interval)
    }

    pub fn stream(
        &self,
        status: i64,
        headers: &ZendHashTable,
        length: Option<i64>,
    ) -> PhpResult<HttpStream> {
        Process::refuse_after_fork()?;
        let (writer, body) = Body::stream(length.and_then(|length| u64::try_from(length).ok()));
        self.call.respond(response(status, headers, body)?);
        Ok(HttpStream {
            writer: RefCell::new(Some(writer)),
        })
    }

    pub fn stream_events(
        &self,
        status: i64,
        headers: &ZendHashTable,
        heartbeat: f64,
    ) -> PhpResult<HttpStream> {
        Process::refuse_after_fork()?;
        let beats = (heartbeat > 0.0).then(|| (seconds(heartbeat), Bytes::from_static(HEARTBEAT)));
        let (writer, body) = Body::events(beats);
        self.call.respond(response(status, headers, body)?);
        Ok(HttpStream {
            writer: RefCell::new(Some(writer)),
        })
    }
}

impl HttpRequest {
    /// As an instance of `class`, which extends ours.
    fn into_object(self, class: &'static ClassEntry) -> PhpResult<Zval> {
        // SAFETY: the object is initialised in the next line, before anybody else sees it.
        let mut object = unsafe { ZendClassObject::<Self>::new_uninit(Some(class)) };
        object.initialize(self);
        Ok(object.into_zval(false)?)
    }
}

/// A response body on its way.
#[php_class]
#[php(name = "Weft\\Native\\HttpStream")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct HttpStream {
    /// `None` once it has ended.
    writer: RefCell<Option<BodyWriter>>,
}

#[php_impl]
impl HttpStream {
    pub fn write(&self, bytes: &Zval) -> PhpResult<i64> {
        Process::refuse_after_fork()?;
        let piece = bytes
            .zend_str()
            .ok_or_else(|| Failure::new("usage", "a piece of a response must be a string"))?;
        let writer = self.writer.borrow();
        let writer = writer.as_ref().ok_or_else(|| {
            Failure::new(
                "usage",
                "the response has ended: nothing more can be written",
            )
        })?;
        let has_room = writer
            .write(Bytes::copy_from_slice(piece.as_bytes()))
            .map_err(gone)?;
        if has_room {
            return Ok(0);
        }
        let room = writer.room();
        start(async move { room.await.map(|()| Payload::Null).map_err(gone) })
    }

    pub fn end(&self, trailers: &ZendHashTable) -> PhpResult<()> {
        let trailers = match trailers.is_empty() {
            true => None,
            false => Some(header_map(trailers)?),
        };
        if let Some(writer) = self.writer.borrow_mut().take() {
            writer.end(trailers);
        }
        Ok(())
    }

    pub fn abort(&self) {
        let writer = self.writer.borrow_mut().take();
        drop(writer);
    }
}

fn text(text: &str) -> Zval {
    binary(text.as_bytes())
}

/// All fields of that name, as one value would say it (RFC 9110 §5.3); cookies have a separator of their own.
fn joined(headers: &HeaderMap, name: &str) -> Option<Zval> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    let Some(second) = values.next() else {
        return Some(binary(first.as_bytes()));
    };
    let separator: &[u8] = match name.eq_ignore_ascii_case("cookie") {
        true => b"; ",
        false => b", ",
    };
    let mut all = first.as_bytes().to_vec();
    for value in std::iter::once(second).chain(values) {
        all.extend_from_slice(separator);
        all.extend_from_slice(value.as_bytes());
    }
    Some(binary(&all))
}

/// `[name => [value, …]]`, names in lower case.
fn fields(headers: &HeaderMap) -> PhpResult<Zval> {
    let mut fields = ZendHashTable::with_capacity(headers.keys_len() as u32);
    for name in headers.keys() {
        let mut values = ZendHashTable::new();
        for value in headers.get_all(name) {
            values.push(binary(value.as_bytes()))?;
        }
        fields.insert(name.as_str(), array_zval(values))?;
    }
    Ok(array_zval(fields))
}

fn response(status: i64, headers: &ZendHashTable, body: Body) -> PhpResult<Response<Body>> {
    let mut response = Response::new(body);
    *response.status_mut() = final_status(status)?;
    *response.headers_mut() = header_map(headers)?;
    Ok(response)
}

fn final_status(status: i64) -> PhpResult<StatusCode> {
    let code = u16::try_from(status)
        .ok()
        .and_then(|code| StatusCode::from_u16(code).ok())
        .filter(|code| !code.is_informational());
    let code = code.ok_or_else(|| {
        let message = format!("there is no final status {status}: it must be 200 to 999");
        Failure::new("usage", message)
    })?;
    Ok(code)
}

/// `[name => value]` or `[name => [value, …]]`.
fn header_map(headers: &ZendHashTable) -> PhpResult<HeaderMap> {
    let mut map = HeaderMap::with_capacity(headers.len() + 2);
    let mut entries = headers.iter();
    while let Some((key, value)) = entries.next_zval() {
        let key = key.zend_str().map(ZendStr::as_bytes).unwrap_or_default();
        let name = HeaderName::from_bytes(key).map_err(|_| {
            let key = String::from_utf8_lossy(key);
            Failure::new("usage", format!("\"{key}\" is no name of a header field"))
        })?;
        match value.array() {
            None => {
                let value = header_value(&name, value)?;
                map.append(name, value);
            }
            Some(values) => {
                for value in values.values() {
                    map.append(&name, header_value(&name, value)?);
                }
            }
        }
    }
    Ok(map)
}

fn header_value(name: &HeaderName, value: &Zval) -> PhpResult<HeaderValue> {
    let refuse = |what: &str| Failure::new("usage", format!("the header field {name} {what}"));
    if let Some(number) = value.long() {
        return Ok(HeaderValue::from(number));
    }
    let text = value
        .dereference()
        .zend_str()
        .ok_or_else(|| refuse("must be a string, an int or a list of them"))?;
    HeaderValue::from_bytes(text.as_bytes())
        .map_err(|_| refuse("has a line break or another character that is not allowed").into())
}

fn listen_failure(error: ListenError) -> Failure {
    let kind = match error {
        ListenError::Address(_) => "http.address",
        ListenError::Refused { .. } => "http.listen",
    };
    Failure::new(kind, error.to_string())
}

fn body_failure(error: BodyError) -> Failure {
    let kind = match error {
        BodyError::TooLarge { .. } => "http.body.too_large",
        BodyError::TimedOut { .. } => "http.body.timed_out",
        BodyError::Incomplete { .. } => "http.body.incomplete",
        BodyError::Taken => "usage",
    };
    Failure::new(kind, error.to_string())
}

fn gone(_: Broken) -> Failure {
    Failure::new(
        "http.gone",
        "the client has gone away before the response was complete",
    )
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    module
        .class::<HttpServer>()
        .class::<HttpRequest>()
        .class::<HttpStream>()
        .class::<HttpSocket>()
        .class::<HttpFile>()
        .class::<HttpFolder>()
        .class::<HttpUpload>()
        .class::<HttpEncoder>()
}
