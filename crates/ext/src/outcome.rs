//! How an operation ends.

use ext_php_rs::exception::PhpResult;
use ext_php_rs::types::Zval;

use crate::failure::Failure;

pub type Outcome = Result<Payload, Failure>;

/// The outcome of an operation. It has no PHP values; they are created when PHP takes it.
pub enum Payload {
    Null,
    Int(i64),
    /// Anything richer: built on the PHP thread when the outcome is taken.
    Build(Box<dyn FnOnce() -> PhpResult<Zval>>),
}

impl Payload {
    pub fn build(build: impl FnOnce() -> PhpResult<Zval> + 'static) -> Self {
        Self::Build(Box::new(build))
    }

    pub fn into_zval(self) -> PhpResult<Zval> {
        let mut zval = Zval::new();
        match self {
            Self::Null => zval.set_null(),
            Self::Int(number) => zval.set_long(number),
            Self::Build(build) => return build(),
        }
        Ok(zval)
    }
}
