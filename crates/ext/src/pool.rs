//! `Weft\Native\Pool`: the pool of any PHP resource. PHP makes, checks and closes the resources; here they are numbers.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, Zval};
use tokio::sync::{Notify, oneshot};

use weft_core::pool::{self, Condition, Histogram, Holder, Lease, Manage, PoolOptions, Stats};

use crate::caller::borrower;
use crate::convert;
use crate::failure::{Detail, Failure};
use crate::outcome::Payload;
use crate::process::Process;
use crate::runtime::{expect, finished_by, seconds, start};
use crate::text::Text;

/// The options as `Weft\Pool\PoolOptions` hands them over; what is missing has the core's default.
pub fn options(from: &ZendHashTable, name: String) -> PoolOptions {
    let defaults = PoolOptions::default();
    let time = |key: &str, default| {
        from.get(key)
            .and_then(Zval::double)
            .map_or(default, seconds)
    };
    let count = |key: &str, default| {
        let number = from.get(key).and_then(Zval::long);
        number.map_or(default, |number| usize::try_from(number).unwrap_or(0))
    };
    PoolOptions {
        size: count("size", defaults.size),
        minimum_idle: count("minimumIdle", defaults.minimum_idle),
        idle_timeout: time("idleTimeout", defaults.idle_timeout),
        max_lifetime: time("maxLifetime", defaults.max_lifetime),
        lifetime_jitter: from
            .get("lifetimeJitter")
            .and_then(Zval::double)
            .unwrap_or(defaults.lifetime_jitter),
        renewal_timeout: time("renewalTimeout", defaults.renewal_timeout),
        borrow_timeout: time("borrowTimeout", defaults.borrow_timeout),
        return_timeout: time("returnTimeout", defaults.return_timeout),
        create_timeout: time("createTimeout", defaults.create_timeout),
        keepalive_interval: time("keepaliveInterval", defaults.keepalive_interval),
        validate_after: time("validateAfter", defaults.validate_after),
        validation_timeout: time("validationTimeout", defaults.validation_timeout),
        leak_threshold: time("leakThreshold", defaults.leak_threshold),
        connect_limit: count("connectLimit", defaults.connect_limit),
        fail_fast: from
            .get("failFast")
            .and_then(Zval::bool)
            .unwrap_or(defaults.fail_fast),
        name,
    }
}

/// The pool's numbers by name.
pub fn stats(stats: &Stats) -> PhpResult<Zval> {
    let mut table = ZendHashTable::new();
    let numbers = [
        ("size", stats.size as u64),
        (
            "total",
            (stats.idle + stats.in_use + stats.connecting) as u64,
        ),
        ("idle", stats.idle as u64),
        ("in_use", stats.in_use as u64),
        ("connecting", stats.connecting as u64),
        ("waiting", stats.waiting as u64),
        ("borrowed", stats.borrowed),
        ("created", stats.created),
        ("closed", stats.closed),
        ("broken", stats.broken),
        ("expired", stats.expired),
        ("timeouts", stats.timeouts),
        ("connect_failures", stats.connect_failures),
        ("refused", stats.refused),
        ("leaks", stats.leaks),
    ];
    for (name, number) in numbers {
        table.insert(name, number as i64)?;
    }
    for (name, histogram) in [
        ("wait", &stats.wait),
        ("usage", &stats.usage),
        ("creation", &stats.creation),
    ] {
        table.insert(
            format!("{name}_seconds").as_str(),
            histogram.sum().as_secs_f64(),
        )?;
        table.insert(format!("{name}_histogram").as_str(), buckets(histogram)?)?;
    }
    Ok(convert::array_zval(table))
}

/// Counts by the upper bound in seconds, as text since PHP has no float keys; `+Inf` for the last.
fn buckets(histogram: &Histogram) -> PhpResult<Zval> {
    let mut table = ZendHashTable::new();
    let bounds = Histogram::bounds().map(|bound| bound.to_string());
    let names = bounds.iter().map(String::as_str).chain(["+Inf"]);
    for (name, count) in names.zip(histogram.counts()) {
        table.insert(name, *count as i64)?;
    }
    Ok(convert::array_zval(table))
}

/// `[task, seconds held, file, line, statement, stack]`.
pub fn holder(holder: &Holder) -> PhpResult<Zval> {
    let mut row = ZendHashTable::new();
    let borrower = &holder.borrower;
    row.push(borrower.task.map(|task| task as i64))?;
    row.push(holder.held.as_secs_f64())?;
    row.push(borrower.file.as_deref())?;
    row.push(i64::from(borrower.line))?;
    row.push(holder.statement.as_deref())?;
    row.push(borrower.stack.as_deref())?;
    Ok(convert::array_zval(row))
}

pub fn holders(holders: &[Holder]) -> PhpResult<Zval> {
    let mut list = ZendHashTable::new();
    for entry in holders {
        list.push(holder(entry)?)?;
    }
    Ok(convert::array_zval(list))
}

/// A resource of PHP.
struct Resource {
    id: i64,
    condition: Condition,
}

/// Work of the pool that PHP does.
enum Work {
    Create(i64),
    /// The create time-out has passed.
    Abandon(i64),
    Check(i64),
    Reset(i64),
    Close(i64),
    Leak(Holder),
}

/// A factory threw. `error` is the number under which PHP keeps the exception.
#[derive(Debug, Clone)]
struct FactoryFailure {
    error: i64,
    message: String,
}

impl std::fmt::Display for FactoryFailure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

/// Hands work to PHP, and its outcomes to the pool.
#[derive(Default)]
struct WorkQueue {
    pending: RefCell<VecDeque<Work>>,
    arrived: Notify,
    last_request: Cell<i64>,
    creating: RefCell<HashMap<i64, oneshot::Sender<Result<i64, FactoryFailure>>>>,
    /// Resources that are being checked or reset.
    verifying: RefCell<HashMap<i64, oneshot::Sender<bool>>>,
    checks: bool,
    resets: bool,
}

impl WorkQueue {
    fn push(&self, work: Work) {
        self.pending.borrow_mut().push_back(work);
        self.arrived.notify_one();
    }

    /// Has a resource checked or reset. `None` if that failed: the resource is closed then.
    async fn verify(&self, mut resource: Resource, work: Work) -> Option<Resource> {
        let (answer, answered) = oneshot::channel();
        self.verifying.borrow_mut().insert(resource.id, answer);
        let guard = VerifyGuard {
            queue: self,
            id: resource.id,
        };
        self.push(work);
        let healthy = answered.await.unwrap_or(false);
        std::mem::forget(guard);
        if !healthy {
            self.push(Work::Close(resource.id));
            return None;
        }
        resource.condition = Condition::Clean;
        Some(resource)
    }
}

/// Closes a resource whose check or reset took too long.
struct VerifyGuard<'a> {
    queue: &'a WorkQueue,
    id: i64,
}

impl Drop for VerifyGuard<'_> {
    fn drop(&mut self) {
        self.queue.verifying.borrow_mut().remove(&self.id);
        self.queue.push(Work::Close(self.id));
    }
}

/// Cancels a factory that took too long.
struct CreateGuard<'a> {
    queue: &'a WorkQueue,
    request: i64,
}

impl Drop for CreateGuard<'_> {
    fn drop(&mut self) {
        let is_running = self
            .queue
            .creating
            .borrow_mut()
            .remove(&self.request)
            .is_some();
        if is_running {
            self.queue.push(Work::Abandon(self.request));
        }
    }
}

/// Manages PHP's resources for the pool.
struct Resources(Rc<WorkQueue>);

impl Manage for Resources {
    type Connection = Resource;
    type Error = FactoryFailure;

    async fn connect(&self) -> Result<Resource, FactoryFailure> {
        let queue = &*self.0;
        let request = queue.last_request.get() + 1;
        queue.last_request.set(request);
        let (answer, answered) = oneshot::channel();
        queue.creating.borrow_mut().insert(request, answer);
        let _guard = CreateGuard { queue, request };
        queue.push(Work::Create(request));
        let id = answered.await.unwrap_or_else(|_| {
            Err(FactoryFailure {
                error: 0,
                message: "the factory was cancelled".to_owned(),
            })
        })?;
        Ok(Resource {
            id,
            condition: Condition::Clean,
        })
    }

    fn condition(&self, resource: &mut Resource) -> Condition {
        resource.condition
    }

    async fn recover(&self, resource: Resource) -> Option<Resource> {
        let work = Work::Reset(resource.id);
        self.0.verify(resource, work).await
    }

    async fn validate(&self, resource: Resource) -> Option<Resource> {
        if !self.0.checks {
            return Some(resource);
        }
        let work = Work::Check(resource.id);
        self.0.verify(resource, work).await
    }

    fn close(&self, resource: Resource) {
        self.0.push(Work::Close(resource.id));
    }
}

#[php_class]
#[php(name = "Weft\\Native\\Pool")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct Pool {
    pool: pool::Pool<Resources>,
    queue: Rc<WorkQueue>,
    leases: Rc<RefCell<HashMap<i64, Lease<Resources>>>>,
    traces: bool,
}

#[php_impl]
impl Pool {
    pub fn open(
        options: &ZendHashTable,
        name: Text<'_>,
        checks: bool,
        resets: bool,
    ) -> PhpResult<Self> {
        Process::refuse_after_fork()?;
        let name = name
            .utf8()
            .map_err(|wrong| Failure::new("usage", format!("the name of the pool is {wrong}")))?;
        let options = self::options(options, name.to_owned());
        let traces = !options.leak_threshold.is_zero();
        let queue = Rc::new(WorkQueue {
            checks,
            resets,
            ..WorkQueue::default()
        });
        let pool = pool::Pool::new(Resources(Rc::clone(&queue)), options);
        let reports = Rc::downgrade(&queue);
        pool.on_leak(move |holder| {
            if let Some(queue) = reports.upgrade() {
                queue.push(Work::Leak(holder));
            }
        });
        Ok(Self {
            pool,
            queue,
            leases: Rc::default(),
            traces,
        })
    }

    pub fn warm_up(&self) -> PhpResult<i64> {
        let pool = self.pool.clone();
        start(async move {
            pool.warm_up();
            Ok(Payload::Null)
        })
    }

    pub fn borrow(&self, task: i64) -> PhpResult<i64> {
        Process::refuse_after_fork()?;
        let handle = self.pool.on_behalf_of(borrower(task, self.traces));
        if let Some(lease) = handle.try_borrow() {
            return Ok(keep(&self.leases, lease));
        }
        let leases = Rc::clone(&self.leases);
        // Kept only when it is taken: an outcome that is dropped gives the resource back.
        let outcome = move |lent: Result<Lease<Resources>, pool::Error<FactoryFailure>>| {
            let lease = lent.map_err(failure)?;
            Ok(Payload::build(move || {
                let mut zval = Zval::new();
                zval.set_long(keep(&leases, lease));
                Ok(zval)
            }))
        };
        let Some(queued) = handle.queue() else {
            return start(async move { outcome(handle.borrow().await) }).map(i64::wrapping_neg);
        };
        let acquired = queued.on_acquired();
        let (op, promise) = expect(queued)?;
        acquired.then(move |lent| promise.keep(outcome(lent)));
        Ok(-op)
    }

    pub fn give_back(&self, id: i64, broken: bool) -> i64 {
        let lease = self.leases.borrow_mut().remove(&id);
        let Some(mut lease) = lease else { return 0 };
        if broken {
            lease.discard();
            return 0;
        }
        if self.queue.resets {
            lease.condition = Condition::Dirty;
        }
        finished_by(move || drop(lease))
    }

    pub fn work_arrived(&self) -> PhpResult<i64> {
        let queue = Rc::clone(&self.queue);
        start(async move {
            loop {
                if !queue.pending.borrow().is_empty() {
                    return Ok(Payload::Null);
                }
                queue.arrived.notified().await;
            }
        })
    }

    pub fn work(&self) -> PhpResult<Zval> {
        let work = std::mem::take(&mut *self.queue.pending.borrow_mut());
        let mut list = ZendHashTable::new();
        for item in work {
            let mut row = ZendHashTable::new();
            match item {
                Work::Create(request) => (row.push("create")?, row.push(request)?),
                Work::Abandon(request) => (row.push("abandon")?, row.push(request)?),
                Work::Check(id) => (row.push("check")?, row.push(id)?),
                Work::Reset(id) => (row.push("reset")?, row.push(id)?),
                Work::Close(id) => (row.push("close")?, row.push(id)?),
                Work::Leak(leak) => (row.push("leak")?, row.push(holder(&leak)?)?),
            };
            list.push(row)?;
        }
        Ok(convert::array_zval(list))
    }

    pub fn created(&self, request: i64, id: i64) -> bool {
        let answer = self.queue.creating.borrow_mut().remove(&request);
        answer.is_some_and(|answer| answer.send(Ok(id)).is_ok())
    }

    pub fn failed(&self, request: i64, error: i64, message: Text<'_>) {
        let answer = self.queue.creating.borrow_mut().remove(&request);
        if let Some(answer) = answer {
            let message = message.lossy();
            // The request may have timed out.
            let _ = answer.send(Err(FactoryFailure { error, message }));
        }
    }

    pub fn verified(&self, id: i64, healthy: bool) {
        let answer = self.queue.verifying.borrow_mut().remove(&id);
        if let Some(answer) = answer {
            // The request may have timed out.
            let _ = answer.send(healthy);
        }
    }

    pub fn resize(&self, size: i64, minimum_idle: i64) -> PhpResult<()> {
        Process::refuse_after_fork()?;
        let number = |number| usize::try_from(number).unwrap_or(0);
        self.pool.resize(number(size), number(minimum_idle));
        Ok(())
    }

    pub fn pause(&self) -> PhpResult<()> {
        Process::refuse_after_fork()?;
        self.pool.pause();
        Ok(())
    }

    pub fn resume(&self) -> PhpResult<()> {
        Process::refuse_after_fork()?;
        self.pool.resume();
        Ok(())
    }

    pub fn reset(&self) -> PhpResult<()> {
        Process::refuse_after_fork()?;
        self.pool.reset();
        Ok(())
    }

    pub fn stats(&self) -> PhpResult<Zval> {
        stats(&self.pool.stats())
    }

    pub fn holders(&self) -> PhpResult<Zval> {
        holders(&self.pool.holders())
    }

    pub fn close(&self) -> PhpResult<i64> {
        let pool = self.pool.clone();
        start(async move {
            pool.close().await;
            Ok(Payload::Null)
        })
    }
}

fn keep(leases: &RefCell<HashMap<i64, Lease<Resources>>>, lease: Lease<Resources>) -> i64 {
    let id = lease.id;
    leases.borrow_mut().insert(id, lease);
    id
}

fn failure(error: pool::Error<FactoryFailure>) -> Failure {
    let message = error.to_string();
    match error {
        pool::Error::Exhausted { .. } => Failure::new("pool.exhausted", message),
        pool::Error::Slow { error, .. } => {
            let thrown = error.map_or(0, |error| error.error);
            Failure::new("pool.slow", message).with("error", Detail::Int(thrown))
        }
        pool::Error::SelfBlocked { .. } => Failure::new("pool.blocked", message),
        pool::Error::Down { error, .. } => {
            Failure::new("pool.down", message).with("error", Detail::Int(error.error))
        }
        pool::Error::Closed { .. } => Failure::new("pool.closed", message),
        pool::Error::Connect(error) => {
            Failure::new("pool.create", message).with("error", Detail::Int(error.error))
        }
    }
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    module.class::<Pool>()
}
