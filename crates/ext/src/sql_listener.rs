//! `Weft\Native\SqlListener`.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, Zval};
use tokio::sync::{Mutex, Notify};

use weft_core::sql::postgres::{Listener, News};

use crate::convert::array_zval;
use crate::failure::Failure;
use crate::outcome::Payload;
use crate::process::Process;
use crate::runtime::start;
use crate::sql_failure::failure;

#[php_class]
#[php(name = "Weft\\Native\\SqlListener")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct SqlListener {
    /// `None` once closed.
    listener: RefCell<Option<Rc<Mutex<Listener>>>>,
    /// Ends waits with an error when the listener is closed.
    closed: Arc<Notify>,
}

impl SqlListener {
    pub fn new(listener: Listener) -> Self {
        Self {
            listener: RefCell::new(Some(Rc::new(Mutex::new(listener)))),
            closed: Arc::new(Notify::new()),
        }
    }

    fn listener(&self) -> PhpResult<Rc<Mutex<Listener>>> {
        let listener = self.listener.borrow().clone();
        Ok(listener.ok_or_else(|| Failure::new("usage", "this listener is closed"))?)
    }
}

#[php_impl]
impl SqlListener {
    pub fn wait(&self) -> PhpResult<i64> {
        let listener = self.listener()?;
        let closed = Arc::clone(&self.closed).notified_owned();
        start(async move {
            tokio::select! {
                news = async { listener.lock().await.wait().await } => news.map_err(failure)?,
                () = closed => {}
            }
            Ok(Payload::Null)
        })
    }

    pub fn take(&self) -> PhpResult<Zval> {
        let listener = self.listener()?;
        // Another task waits for events, so there are none.
        let news = listener.try_lock().map(|mut listener| listener.take());
        let mut list = ZendHashTable::new();
        for news in news.unwrap_or_default() {
            let mut fields = ZendHashTable::with_capacity(3);
            match news {
                News::Notification(notification) => {
                    fields.push(notification.channel)?;
                    fields.push(notification.payload)?;
                    fields.push(i64::from(notification.process))?;
                }
                News::Missed { reason } => fields.push(reason)?,
            }
            list.push(array_zval(fields))?;
        }
        Ok(array_zval(list))
    }

    pub fn close(&self) {
        Process::release(self.listener.borrow_mut().take());
        self.closed.notify_waiters();
    }
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    module.class::<SqlListener>()
}
