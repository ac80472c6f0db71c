//! `Weft\Native\Supervisor` and what a worker tells its supervisor.

use std::cell::RefCell;
use std::io;
use std::path::Path;

use ext_php_rs::convert::IntoZval;
use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, Zval};

use weft_core::workers::{
    Event, MetricsServer, Supervisor as CoreSupervisor, SupervisorClient, work_done,
};

use crate::array::Values;
use crate::failure::Failure;
use crate::runtime::seconds;
use crate::text::pairs;

#[php_class]
#[php(name = "Weft\\Native\\Supervisor")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct Supervisor {
    supervisor: RefCell<CoreSupervisor>,
    metrics: RefCell<Option<MetricsServer>>,
}

#[php_impl]
impl Supervisor {
    pub fn __construct(workers: i64) -> PhpResult<Self> {
        let workers = usize::try_from(workers).unwrap_or(1);
        let supervisor = CoreSupervisor::new(workers).map_err(failed("cannot supervise"))?;
        Ok(Self {
            supervisor: RefCell::new(supervisor),
            metrics: RefCell::new(None),
        })
    }

    pub fn spawn(
        &self,
        index: i64,
        command: Values<String>,
        environment: &ZendHashTable,
    ) -> PhpResult<i64> {
        let environment = pairs(environment)?;
        let pid = self
            .supervisor
            .borrow_mut()
            .spawn(
                usize::try_from(index).unwrap_or(1),
                &command.0,
                &environment,
            )
            .map_err(failed("cannot start a worker"));
        Ok(i64::from(pid?))
    }

    pub fn wait(&self, timeout: f64) -> PhpResult<Zval> {
        let events = self
            .supervisor
            .borrow_mut()
            .wait(seconds(timeout))
            .map_err(failed("cannot wait for workers"));
        let events = events?;
        let mut list = ZendHashTable::with_capacity(events.len() as u32);
        for event in events {
            list.push(zval(event)?)?;
        }
        let mut zval = Zval::new();
        zval.set_hashtable(list);
        Ok(zval)
    }

    pub fn kill(&self, pid: i64, signal: i64) -> bool {
        let (Ok(pid), Ok(signal)) = (i32::try_from(pid), i32::try_from(signal)) else {
            return false;
        };
        self.supervisor.borrow().kill(pid, signal)
    }

    pub fn watch(&self, directory: &str) -> PhpResult<()> {
        let watched = self
            .supervisor
            .borrow_mut()
            .watch(Path::new(directory))
            .map_err(failed(&format!("cannot watch {directory}")));
        Ok(watched?)
    }

    pub fn start_listening(&self, pid: i64) {
        if let Ok(pid) = u32::try_from(pid) {
            self.supervisor.borrow().start_listening(pid);
        }
    }

    pub fn close_listeners_except_of(&self, pids: Values<i64>) {
        let pids: Vec<u32> = pids
            .0
            .into_iter()
            .filter_map(|pid| u32::try_from(pid).ok())
            .collect();
        self.supervisor
            .borrow_mut()
            .close_listeners_except_of(&pids);
    }

    pub fn serve(&self, address: &str) -> PhpResult<String> {
        let server = MetricsServer::open(address, &self.supervisor.borrow())
            .map_err(failed(&format!("cannot serve metrics on {address}")));
        let server = server?;
        let address = server.address().to_string();
        *self.metrics.borrow_mut() = Some(server);
        Ok(address)
    }

    pub fn update(
        &self,
        ready: i64,
        wanted: i64,
        stopping: bool,
        failing: Values<String>,
    ) -> Option<String> {
        let server = self.metrics.borrow();
        let server = server.as_ref()?;
        let count = |value| u64::try_from(value).unwrap_or(0);
        server.update(count(ready), count(wanted), stopping, failing.0);
        server.take_warning()
    }
}

fn zval(event: Event) -> PhpResult<Zval> {
    let mut fields = ZendHashTable::new();
    match event {
        Event::Signal(signal) => {
            fields.push("signal")?;
            fields.push(i64::from(signal))?;
        }
        Event::Exited { pid, code, signal } => {
            fields.push("exited")?;
            fields.push(i64::from(pid))?;
            fields.push(code.map(i64::from).into_zval(false)?)?;
            fields.push(signal.map(i64::from).into_zval(false)?)?;
        }
        Event::Message { pid, text } => {
            fields.push("message")?;
            fields.push(i64::from(pid))?;
            fields.push(text)?;
        }
        Event::Changed(path) => {
            fields.push("changed")?;
            fields.push(path.to_string_lossy().into_owned())?;
        }
        Event::ChangesLost => fields.push("changes lost")?,
    }
    let mut zval = Zval::new();
    zval.set_hashtable(fields);
    Ok(zval)
}

fn failed(what: &str) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::new("supervisor", format!("{what}: {error}"))
}

#[php_function]
#[php(name = "Weft\\Native\\supervised")]
pub fn supervised() -> bool {
    SupervisorClient::current().is_some()
}

#[php_function]
#[php(name = "Weft\\Native\\tellSupervisor")]
pub fn tell_supervisor(message: &str) -> PhpResult<()> {
    if let Some(client) = SupervisorClient::current() {
        client
            .send(message)
            .map_err(failed("cannot report to the supervisor"))?;
    }
    Ok(())
}

#[php_function]
#[php(name = "Weft\\Native\\workDone")]
pub fn count_work(units: i64) {
    work_done(u64::try_from(units).unwrap_or(0));
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    module
        .class::<Supervisor>()
        .function(wrap_function!(supervised))
        .function(wrap_function!(tell_supervisor))
        .function(wrap_function!(count_work))
}
