//! `Weft\Native\SqlCopyIn` and `SqlCopyOut`.

use std::cell::RefCell;

use bytes::BytesMut;
use ext_php_rs::binary_slice::BinarySlice;
use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, ZendStr, Zval};

use weft_core::sql::postgres::write_copy_row;
use weft_core::sql::{CopyIn, CopyOut, Error};

use crate::outcome::Payload;
use crate::process::Process;
use crate::runtime::start;
use crate::sql_failure::failure;
use crate::sql_values;

/// Data collected before it is sent.
const CHUNK_BYTES: usize = 64 * 1024;

#[php_class]
#[php(name = "Weft\\Native\\SqlCopyIn")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct SqlCopyIn {
    /// `None` once closed.
    copy: RefCell<Option<CopyIn>>,
    /// The statement, for messages.
    sql: String,
    collected: RefCell<BytesMut>,
}

impl SqlCopyIn {
    pub fn new(copy: CopyIn, sql: String) -> Self {
        Self {
            copy: RefCell::new(Some(copy)),
            sql,
            collected: RefCell::default(),
        }
    }

    fn copy(&self) -> PhpResult<CopyIn> {
        let copy = self.copy.borrow().clone();
        Ok(copy.ok_or_else(|| failure(closed()))?)
    }

    fn is_much(&self) -> bool {
        self.collected.borrow().len() >= CHUNK_BYTES
    }
}

#[php_impl]
impl SqlCopyIn {
    pub fn write(&self, bytes: BinarySlice<u8>) -> bool {
        self.collected.borrow_mut().extend_from_slice(&bytes);
        self.is_much()
    }

    pub fn row(&self, values: &ZendHashTable, row: i64) -> PhpResult<bool> {
        let values = sql_values::row(values, &self.sql, row)?;
        let written = write_copy_row(&values, &mut self.collected.borrow_mut());
        written.map_err(|reason| {
            failure(Error::parameter(&self.sql, format!("row {row}: {reason}")))
        })?;
        Ok(self.is_much())
    }

    pub fn send(&self) -> PhpResult<i64> {
        let chunk = self.collected.borrow_mut().split().freeze();
        let sent = self.copy()?.send(chunk);
        start(async move { sent.await.map(|()| Payload::Null).map_err(failure) })
    }

    pub fn finish(&self) -> PhpResult<i64> {
        let copy = self.copy()?;
        let chunk = self.collected.borrow_mut().split().freeze();
        start(async move {
            if !chunk.is_empty() {
                copy.send(chunk).await.map_err(failure)?;
            }
            let rows = copy.finish().await.map_err(failure)?;
            Ok(Payload::Int(i64::try_from(rows).unwrap_or(i64::MAX)))
        })
    }

    pub fn close(&self) {
        Process::release(self.copy.borrow_mut().take());
    }
}

#[php_class]
#[php(name = "Weft\\Native\\SqlCopyOut")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct SqlCopyOut {
    /// `None` once closed.
    copy: RefCell<Option<CopyOut>>,
}

impl SqlCopyOut {
    pub fn new(copy: CopyOut) -> Self {
        Self {
            copy: RefCell::new(Some(copy)),
        }
    }
}

#[php_impl]
impl SqlCopyOut {
    pub fn next(&self) -> PhpResult<i64> {
        let copy = self.copy.borrow().clone();
        let next = copy.ok_or_else(|| failure(closed()))?.next();
        start(async move {
            Ok(match next.await.map_err(failure)? {
                None => Payload::Null,
                Some(chunk) => Payload::build(move || {
                    let mut zval = Zval::new();
                    zval.set_zend_string(ZendStr::new(&chunk[..], false));
                    Ok(zval)
                }),
            })
        })
    }

    pub fn close(&self) {
        Process::release(self.copy.borrow_mut().take());
    }
}

fn closed() -> Error {
    Error::Usage {
        message: "this COPY is closed".to_owned(),
    }
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    module.class::<SqlCopyIn>().class::<SqlCopyOut>()
}
