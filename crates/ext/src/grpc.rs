//! `Weft\Native\GrpcServer`, `GrpcCall`.

use std::rc::Rc;
use std::task::Poll;

use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, ZendObject, ZendStr, Zval};
use ext_php_rs::zend::ClassEntry;

use weft_core::grpc::{
    Call, Calls, Closed, Code, ConcurrencyLimits, Event, Lane, Limits, Method, RefusalReason,
    RefusalReport, Rule, Status, TemplateError, metadata, trailers,
};
use weft_core::http::HeaderMap;
use weft_core::protobuf::Budget;

use crate::amqp_table::binary;
use crate::array::values;
use crate::call_stats::push_call_stats;
use crate::convert::array_zval;
use crate::failure::{Detail, Failure};
use crate::http::HttpServer;
use crate::outcome::Payload;
use crate::process::Process;
use crate::protobuf;
use crate::runtime::{recurring, seconds, start};
use crate::zend;

/// The class of the library that extends ours: calls are made as instances of it.
const CALL: &str = "Weft\\Grpc\\Call";
/// Events of `next` for a call that was handed out before.
const GONE: i64 = 1;
const EXPIRED: i64 = 2;

#[php_class]
#[php(name = "Weft\\Native\\GrpcServer")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct GrpcServer {
    calls: Rc<Calls>,
    /// [`CALL`], looked up once.
    class: &'static ClassEntry,
}

#[php_impl]
impl GrpcServer {
    pub fn open(
        methods: &ZendHashTable,
        rules: &ZendHashTable,
        limits: &ZendHashTable,
    ) -> PhpResult<Self> {
        let class = ClassEntry::try_find(CALL).ok_or_else(|| {
            let message = format!("the class {CALL} is missing: is the PHP library loaded?");
            Failure::new("runtime", message)
        })?;
        let wrong = |error: TemplateError| Failure::new("grpc.service", error.to_string());
        let calls = Calls::new(
            self::methods(methods)?,
            self::rules(rules)?,
            self::limits(limits),
        );
        let calls = calls.map_err(wrong)?;
        let process = Process::current()?;
        process.reactor.spawn_background(calls.keep_time());
        Ok(Self {
            calls: Rc::new(calls),
            class,
        })
    }

    pub fn attach(&self, server: &HttpServer, exclusive: bool) {
        server.delegate(match exclusive {
            true => self.calls.exclusive(),
            false => Rc::new(Calls::clone(&self.calls)),
        });
    }

    pub fn next(&self, max: i64) -> PhpResult<Zval> {
        Process::refuse_after_fork()?;
        let max = usize::try_from(max).unwrap_or(0).max(1);
        let events = batch(&self.calls, self.class, max)?;
        self.calls.rearm();
        Ok(events)
    }

    pub fn arrivals(&self) -> PhpResult<i64> {
        let (op, announcer) = recurring()?;
        self.calls.listen(move || announcer.announce());
        Ok(op)
    }

    pub fn handlers(&self) -> i64 {
        self.calls.handlers() as i64
    }

    pub fn fit(&self, fibers: i64) {
        self.calls.fit(usize::try_from(fibers).unwrap_or(1));
    }

    pub fn refusals(&self) -> PhpResult<i64> {
        let refusals = self.calls.refusals();
        start(async move {
            let reports = refusals.await;
            Ok(Payload::build(move || refused(&reports)))
        })
    }

    pub fn in_flight(&self) -> i64 {
        self.calls.in_flight() as i64
    }

    pub fn call_stats(&self) -> PhpResult<Zval> {
        let mut row = ZendHashTable::new();
        push_call_stats(&mut row, self.calls.call_stats())?;
        Ok(array_zval(row))
    }
}

/// The events by call id: a call to answer, or [`GONE`] or [`EXPIRED`] for one that was handed out before.
fn batch(calls: &Calls, class: &'static ClassEntry, max: usize) -> PhpResult<Zval> {
    let mut batch = ZendHashTable::new();
    for _ in 0..max {
        let (id, value) = match calls.take() {
            None => break,
            Some(Event::Request(call)) => (call.id(), GrpcCall { call }.into_object(class)?),
            Some(Event::Gone(id)) => (id, long(GONE)),
            Some(Event::Expired(id)) => (id, long(EXPIRED)),
        };
        batch.insert_at_index(id as i64, value)?;
    }
    Ok(array_zval(batch))
}

/// `[[reason, count, last client, what that was told], …]`
fn refused(reports: &[RefusalReport<RefusalReason>]) -> PhpResult<Zval> {
    let mut rows = ZendHashTable::new();
    for report in reports {
        let mut row = ZendHashTable::new();
        row.push(report.reason.name())?;
        row.push(report.count as i64)?;
        row.push(report.peer.map(|peer| peer.to_string()))?;
        row.push(binary(report.detail.as_bytes()))?;
        rows.push(array_zval(row))?;
    }
    Ok(array_zval(rows))
}

pub fn long(number: i64) -> Zval {
    let mut zval = Zval::new();
    zval.set_long(number);
    zval
}

/// `[[path, client streams, bytes of a message, seconds of a call, [concurrency limit, …], lane], …]`
fn methods(given: &ZendHashTable) -> PhpResult<Vec<Method>> {
    let method = |given: &Zval| {
        let given = given.array()?;
        let concurrency = given.get_index(4)?.array()?;
        Some(Method {
            path: given.get_index(0)?.string()?,
            client_streams: given.get_index(1)?.bool()?,
            lane: lane(given.get_index(5)?.long()?),
            message_bytes: given.get_index(2)?.long().map(size),
            timeout: given.get_index(3)?.double().map(seconds),
            concurrency: values(concurrency)
                .filter_map(Zval::long)
                .map(size)
                .collect(),
        })
    };
    let methods: Option<Vec<Method>> = values(given).map(method).collect();
    let wrong = || Failure::new("usage", "a method is [path, whether the client streams, …]");
    Ok(methods.ok_or_else(wrong)?)
}

/// As `Weft\Grpc\Internal\MethodTable` numbers them.
fn lane(number: i64) -> Lane {
    match number {
        0 => Lane::Unary,
        1 => Lane::Stream,
        _ => Lane::Watch,
    }
}

/// `[[method of HTTP, path, index of the method, whether the server streams], …]`
fn rules(given: &ZendHashTable) -> PhpResult<Vec<Rule>> {
    let rule = |given: &Zval| {
        let given = given.array()?;
        Some(Rule {
            verb: given.get_index(0)?.string()?,
            template: given.get_index(1)?.string()?,
            method: size(given.get_index(2)?.long()?),
            server_streams: given.get_index(3)?.bool()?,
        })
    };
    let rules: Option<Vec<Rule>> = values(given).map(rule).collect();
    let wrong = || Failure::new("usage", "a rule is [method of HTTP, path, index, …]");
    Ok(rules.ok_or_else(wrong)?)
}

/// `[[name, in flight, queue], …]`
fn concurrency_limits(given: &ZendHashTable) -> Vec<ConcurrencyLimits> {
    let limit = |given: &Zval| {
        let given = given.array()?;
        Some(ConcurrencyLimits {
            name: given.get_index(0)?.string()?,
            running: size(given.get_index(1)?.long()?),
            queue: size(given.get_index(2)?.long()?),
        })
    };
    values(given).filter_map(limit).collect()
}

fn size(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

fn limits(given: &ZendHashTable) -> Limits {
    let default = Limits::default();
    let count = |name: &str, default: usize| {
        let number = given.get(name).and_then(Zval::long);
        number.map_or(default, size)
    };
    let origins = given.get("webOrigins").and_then(Zval::array);
    let concurrency = given.get("concurrency").and_then(Zval::array);
    Limits {
        message_bytes: count("messageBytes", default.message_bytes),
        metadata_bytes: count("metadataBytes", default.metadata_bytes),
        in_flight: count("inFlight", default.in_flight),
        streams: count("streams", default.streams),
        queue: count("queue", default.queue),
        streams_per_connection: count("streamsPerConnection", default.streams_per_connection),
        watches: count("watches", default.watches),
        watches_per_connection: count("watchesPerConnection", default.watches_per_connection),
        client_share: given
            .get("clientShare")
            .and_then(Zval::double)
            .unwrap_or(default.client_share),
        write_timeout: given
            .get("writeTimeout")
            .and_then(Zval::double)
            .map(seconds),
        buffered_bytes: count("bufferedBytes", default.buffered_bytes),
        request_timeout: given
            .get("requestTimeout")
            .and_then(Zval::double)
            .map_or(default.request_timeout, seconds),
        web_origins: origins.map_or_else(Vec::new, |origins| {
            values(origins).filter_map(Zval::string).collect()
        }),
        concurrency: concurrency.map_or_else(Vec::new, self::concurrency_limits),
    }
}

/// Not final: `Weft\Grpc\Call` adds what has to wait.
#[php_class]
#[php(name = "Weft\\Native\\GrpcCall")]
pub struct GrpcCall {
    call: Rc<Call>,
}

#[php_impl]
impl GrpcCall {
    pub fn id(&self) -> i64 {
        self.call.id() as i64
    }

    pub fn index(&self) -> i64 {
        self.call.method() as i64
    }

    pub fn method(&self) -> Zval {
        binary(self.call.path().as_bytes())
    }

    pub fn variables(&self) -> PhpResult<Zval> {
        let mut variables = ZendHashTable::new();
        for (field, value) in self.call.variables() {
            variables.insert(field.as_str(), binary(value.as_bytes()))?;
        }
        Ok(array_zval(variables))
    }

    pub fn query(&self) -> Zval {
        binary(self.call.query().as_bytes())
    }

    pub fn authority(&self) -> Zval {
        binary(self.call.authority().as_bytes())
    }

    pub fn peer(&self) -> Option<String> {
        let address = self.call.peer().address;
        address.map(|address| address.to_string())
    }

    pub fn is_secure(&self) -> bool {
        self.call.peer().is_tls
    }

    pub fn metadata(&self) -> PhpResult<Zval> {
        fields(self.call.headers())
    }

    pub fn time_left(&self) -> Option<f64> {
        let deadline = self.call.deadline()?.into_std();
        let now = std::time::Instant::now();
        let left = deadline.saturating_duration_since(now).as_secs_f64();
        let late = now.saturating_duration_since(deadline).as_secs_f64();
        Some(left - late)
    }

    pub fn is_open(&self) -> bool {
        self.call.is_open()
    }

    pub fn was_compressed(&self) -> bool {
        self.call.was_compressed()
    }

    pub fn message(&self) -> PhpResult<Zval> {
        Ok(binary(&self.call.take_message().map_err(ended)?))
    }

    pub fn request(&self, class: &Zval) -> PhpResult<Zval> {
        let wrong = || Failure::new("usage", "the class of a message must be a string");
        let class = class.zend_str().ok_or_else(wrong)?;
        let memory = Budget::new(self.call.message_memory());
        protobuf::decode(class, &self.call.take_message().map_err(ended)?, memory)
    }

    pub fn message_memory(&self) -> i64 {
        i64::try_from(self.call.message_memory()).unwrap_or(i64::MAX)
    }

    pub fn read(&self) -> PhpResult<Zval> {
        Process::refuse_after_fork()?;
        if let Poll::Ready(message) = self.call.try_read() {
            return Ok(message_or_null(message.map_err(ended)?.as_deref()));
        }
        let reading = self.call.read();
        Ok(long(start(async move {
            let message = reading.await.map_err(ended)?;
            Ok(Payload::build(move || {
                Ok(message_or_null(message.as_deref()))
            }))
        })?))
    }

    pub fn compress(&self, wanted: bool) -> bool {
        self.call.compress(wanted)
    }

    pub fn begin(&self, metadata: &ZendHashTable) -> PhpResult<bool> {
        Process::refuse_after_fork()?;
        Ok(self.call.begin(header_map(metadata)?))
    }

    pub fn write(&self, message: &Zval) -> PhpResult<i64> {
        Process::refuse_after_fork()?;
        self.await_room(self.call.write(bytes_of(message)?))
    }

    pub fn send(&self, message: &mut ZendObject) -> PhpResult<i64> {
        Process::refuse_after_fork()?;
        self.await_room(protobuf::encode(message, |bytes| self.call.write(bytes))?)
    }

    pub fn reply(&self, message: &Zval, trailers: &ZendHashTable) -> PhpResult<bool> {
        Process::refuse_after_fork()?;
        let trailers = header_map(trailers)?;
        let written = self.call.write(bytes_of(message)?);
        Ok(written.is_ok() && self.call.finish(&Status::OK, trailers))
    }

    pub fn answer(&self, message: &mut ZendObject, trailers: &ZendHashTable) -> PhpResult<bool> {
        Process::refuse_after_fork()?;
        let trailers = header_map(trailers)?;
        let written = protobuf::encode(message, |bytes| self.call.write(bytes))?;
        let is_sent = written.is_ok() && self.call.finish(&Status::OK, trailers);
        self.call.handled();
        Ok(is_sent)
    }

    pub fn finish(
        &self,
        status: i64,
        message: &Zval,
        trailers: &ZendHashTable,
        details: Option<String>,
    ) -> PhpResult<bool> {
        Process::refuse_after_fork()?;
        // The message of an exception may have any encoding.
        let message = String::from_utf8_lossy(bytes_of(message)?).into_owned();
        let code = Code::new(status).ok_or_else(|| {
            let message = format!("there is no status {status}: it must be 0 to 16");
            Failure::new("usage", message)
        })?;
        let status = Status::new(code, message);
        let trailers = header_map(trailers)?;
        let details = details.as_deref().unwrap_or("[]");
        Ok(self.call.finish_with_details(&status, trailers, details))
    }

    pub fn handled(&self) {
        self.call.handled();
    }
}

impl GrpcCall {
    /// 0, or an operation that ends when there is room for the next message.
    fn await_room(&self, written: Result<bool, Closed>) -> PhpResult<i64> {
        if written.map_err(closed)? {
            return Ok(0);
        }
        let room = self.call.room();
        start(async move { room.await.map(|()| Payload::Null).map_err(closed) })
    }

    /// As an instance of `class`, which extends ours.
    fn into_object(self, class: &'static ClassEntry) -> PhpResult<Zval> {
        zend::instance(self, class)
    }
}

pub fn message_or_null(message: Option<&[u8]>) -> Zval {
    message.map_or_else(Zval::null, binary)
}

pub fn bytes_of(message: &Zval) -> PhpResult<&[u8]> {
    let wrong = || Failure::new("usage", "a message on the wire must be a string");
    let bytes = message
        .zend_str()
        .map(ZendStr::as_bytes)
        .ok_or_else(wrong)?;
    if u32::try_from(bytes.len()).is_err() {
        let length = bytes.len();
        let message = format!("a message has {length} bytes, gRPC can send 4294967295");
        return Err(Failure::new("usage", message).into());
    }
    Ok(bytes)
}

/// `[name => [value, …]]`
pub fn fields(headers: &HeaderMap) -> PhpResult<Zval> {
    let mut fields = ZendHashTable::new();
    for (name, value) in metadata(headers) {
        if let Some(values) = fields.get_mut(name).and_then(Zval::array_mut) {
            values.push(binary(value.as_bytes()))?;
            continue;
        }
        let mut values = ZendHashTable::new();
        values.push(binary(value.as_bytes()))?;
        fields.insert(name, array_zval(values))?;
    }
    Ok(array_zval(fields))
}

/// Converts `[name => value]` or `[name => [value, …]]`.
pub fn header_map(given: &ZendHashTable) -> PhpResult<HeaderMap> {
    if given.is_empty() {
        return Ok(HeaderMap::new());
    }
    let mut entries = Vec::with_capacity(given.len());
    let mut all = given.iter();
    while let Some((key, value)) = all.next_zval() {
        // PHP makes an integer of the name "7".
        let name = match key.zend_str() {
            Some(name) => String::from_utf8_lossy(name.as_bytes()).into_owned(),
            None => key
                .long()
                .map_or_else(String::new, |number| number.to_string()),
        };
        match value.array() {
            Some(values) => {
                for value in crate::array::values(values) {
                    entries.push((name.clone(), text_of(&name, value)?));
                }
            }
            None => {
                let text = text_of(&name, value)?;
                entries.push((name, text));
            }
        }
    }
    let wrong = |error: weft_core::grpc::MetadataError| Failure::new("usage", error.to_string());
    Ok(trailers(entries).map_err(wrong)?)
}

fn text_of<'a>(name: &str, value: &'a Zval) -> PhpResult<&'a [u8]> {
    let wrong = || {
        let message = format!("the metadata \"{name}\" must be a string or a list of strings");
        Failure::new("usage", message)
    };
    let text = value.dereference().zend_str();
    Ok(text.map(ZendStr::as_bytes).ok_or_else(wrong)?)
}

pub fn ended(status: Status) -> Failure {
    Failure::new("grpc.status", status.message.into_owned())
        .with("code", Detail::Int(status.code.number().into()))
}

pub fn closed(closed: Closed) -> Failure {
    Failure::new("grpc.closed", closed.to_string())
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    module.class::<GrpcServer>().class::<GrpcCall>()
}
