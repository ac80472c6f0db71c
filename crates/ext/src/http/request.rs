//! `Weft\Native\HttpRequest`

use std::rc::Rc;

use bytes::Bytes;
use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, Zval};
use ext_php_rs::zend::ClassEntry;

use weft_core::http::{Body, Call, Version, WebSocketLimits};

use super::body_failure::body_failure;
use super::fields::{encoded, fields, final_status, header_map, joined, response};
use super::file::HttpFile;
use super::socket::{self, HttpSocket};
use super::stream::HttpStream;
use super::{form, long, text};
use crate::amqp_table::binary;
use crate::failure::Failure;
use crate::metrics::Histogram;
use crate::outcome::Payload;
use crate::process::Process;
use crate::runtime::{seconds, start};
use crate::zend;

/// A comment, which clients of events ignore.
const HEARTBEAT: &[u8] = b":\n\n";
/// Bytes of a method and a path that are put together without an allocation.
const SHORT_ENDPOINT: usize = 128;

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
        text(self.call.method().as_str())
    }

    pub fn path(&self) -> Zval {
        text(self.call.path())
    }

    pub fn endpoint(&self) -> Zval {
        let (method, path) = (self.call.method().as_str(), self.call.path());
        let mut room = [0; SHORT_ENDPOINT];
        match room.get_mut(..method.len() + 1 + path.len()) {
            None => text(&format!("{method} {path}")),
            Some(endpoint) => {
                let (before, after) = endpoint.split_at_mut(method.len());
                before.copy_from_slice(method.as_bytes());
                after[0] = b' ';
                after[1..].copy_from_slice(path.as_bytes());
                binary(endpoint)
            }
        }
    }

    pub fn query_string(&self) -> Zval {
        text(self.call.query())
    }

    pub fn scheme(&self) -> &'static str {
        let client = self.call.client();
        match client.map_or(self.call.peer().is_tls, |client| client.is_https) {
            true => "https",
            false => "http",
        }
    }

    pub fn host(&self) -> Zval {
        if let Some(host) = self.call.client().and_then(|client| client.host.as_deref()) {
            return text(host);
        }
        // Core has put the authority of the target there.
        joined(&self.call.head().headers, "host").unwrap_or_else(|| text(""))
    }

    pub fn protocol(&self) -> &'static str {
        match self.call.head().version {
            Version::HTTP_2 => "2",
            Version::HTTP_10 => "1.0",
            _ => "1.1",
        }
    }

    pub fn client_address(&self) -> Option<String> {
        let address = match self.call.client() {
            Some(client) => client.address,
            // A socket for both versions of IP has the peer's IPv4 address as one of IPv6.
            None => self
                .call
                .peer()
                .address
                .map(|address| address.ip().to_canonical()),
        };
        address.map(|address| address.to_string())
    }

    pub fn client_certificate(&self) -> Option<Zval> {
        self.call.peer().certificate.as_deref().map(binary)
    }

    pub fn client_port(&self) -> Option<i64> {
        let port = match self.call.client() {
            Some(client) => client.port,
            None => self.call.peer().address.map(|address| address.port()),
        };
        port.map(i64::from)
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

    pub fn handled(&self) {
        self.call.handled();
    }

    pub fn is_open(&self) -> bool {
        self.call.is_open()
    }

    pub fn is_queued(&self) -> bool {
        self.call.is_queued()
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

    pub fn next_chunk(&self) -> PhpResult<i64> {
        let reading = self.call.next_chunk();
        start(async move {
            let chunk = reading.await.map_err(body_failure)?;
            Ok(Payload::build(move || Ok(binary(&chunk))))
        })
    }

    pub fn respond(&self, status: i64, headers: &ZendHashTable, body: &Zval) -> PhpResult<bool> {
        Process::refuse_after_fork()?;
        let body = body
            .zend_str()
            .ok_or_else(|| Failure::new("usage", "the body of a response must be a string"))?;
        if let Some(fields) = encoded(headers) {
            let answered =
                self.call
                    .respond_at_once(final_status(status)?, &fields, body.as_bytes());
            if let Some(was_open) = answered {
                return Ok(was_open);
            }
        }
        let body = Bytes::copy_from_slice(body.as_bytes());
        Ok(self.call.respond(response(status, headers, body.into())?))
    }

    pub fn finish(&self, status: i64, headers: &ZendHashTable, body: &Zval) -> PhpResult<()> {
        self.respond(status, headers, body)?;
        self.call.handled();
        Ok(())
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
        Ok(self.call.respond(response))
    }

    pub fn read_form(&self, limits: &ZendHashTable, directory: &Zval) -> PhpResult<i64> {
        Process::refuse_after_fork()?;
        form::read(&self.call, limits, directory)
    }

    pub fn accept_web_socket(
        &self,
        subprotocol: Option<String>,
        message_bytes: i64,
        ping_interval: f64,
        compress: bool,
    ) -> PhpResult<Option<HttpSocket>> {
        Process::refuse_after_fork()?;
        let limits = WebSocketLimits {
            message_bytes: usize::try_from(message_bytes).unwrap_or(0),
            ping_interval: (ping_interval > 0.0).then(|| seconds(ping_interval)),
            compress,
        };
        socket::open(&self.call, subprotocol, limits)
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
        Ok(HttpStream::new(writer))
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
        Ok(HttpStream::new(writer))
    }
}

impl Drop for HttpRequest {
    fn drop(&mut self) {
        self.call.handled();
    }
}

impl HttpRequest {
    pub fn new(call: Rc<Call>) -> Self {
        Self { call }
    }

    /// As an instance of `class`, which extends ours.
    pub fn into_object(self, class: &'static ClassEntry) -> PhpResult<Zval> {
        zend::instance(self, class)
    }
}
