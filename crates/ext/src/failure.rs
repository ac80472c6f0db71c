//! Every way a native call can fail, on its way to a PHP exception.

use ext_php_rs::convert::IntoZvalDyn;
use ext_php_rs::exception::PhpException;
use ext_php_rs::types::{ZendCallable, ZendHashTable, Zval};
use ext_php_rs::zend::ce;

/// A failure without PHP values in it, so that a Tokio task can hold it.
///
/// `kind` selects the PHP exception in `Weft\Internal\Failures`; a test holds the two lists together.
#[derive(Debug, Clone)]
pub struct Failure {
    pub kind: &'static str,
    pub message: String,
    pub details: Vec<(&'static str, Detail)>,
}

#[derive(Debug, Clone)]
pub enum Detail {
    Text(Option<String>),
    Int(i64),
    Float(f64),
}

impl Failure {
    pub fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            details: Vec::new(),
        }
    }

    pub fn panic(message: String) -> Self {
        Self::new("panic", format!("Rust panic: {message}"))
    }

    pub fn with(mut self, name: &'static str, detail: Detail) -> Self {
        self.details.push((name, detail));
        self
    }

    /// Asks the PHP library for the exception object; without the library an `\Error` carries the message.
    fn exception(&self) -> Option<Zval> {
        let factory = ZendCallable::try_from_name("Weft\\Internal\\Failures::exception").ok()?;
        let details = self.details_array();
        let arguments: Vec<&dyn IntoZvalDyn> = vec![&self.kind, &self.message, &details];
        factory.try_call(arguments).ok().filter(Zval::is_object)
    }

    fn details_array(&self) -> Zval {
        let mut array = ZendHashTable::new();
        for (name, detail) in &self.details {
            let mut value = Zval::new();
            match detail {
                Detail::Text(Some(text)) => {
                    let _ = value.set_string(text, false);
                }
                Detail::Text(None) => value.set_null(),
                Detail::Int(number) => value.set_long(*number),
                Detail::Float(number) => value.set_double(*number),
            }
            let _ = array.insert(*name, value);
        }
        let mut zval = Zval::new();
        zval.set_hashtable(array);
        zval
    }
}

impl From<Failure> for PhpException {
    fn from(failure: Failure) -> Self {
        let exception = PhpException::new(failure.message.clone(), 0, ce::error());
        match failure.exception() {
            Some(object) => exception.with_object(object),
            None => exception,
        }
    }
}
