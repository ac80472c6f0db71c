//! The JSON mapping of proto3, between bytes and text by a layout.
//!
//! Messages pass through their bytes: JSON is not the hot path, and so it needs to know nothing of PHP.

mod parse;
mod print;
mod text;
mod time;

pub use parse::from_json;
pub use print::to_json;

use thiserror::Error;

/// Why a message has no JSON, or JSON is no such message. `path` is where, such as `.items[2].price`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("at ${path}: {problem}")]
pub struct JsonError {
    pub path: String,
    pub problem: String,
}

impl JsonError {
    fn new(problem: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            problem: problem.into(),
        }
    }

    fn inside(mut self, step: &str) -> Self {
        self.path.insert_str(0, step);
        self
    }
}

type Result<T> = std::result::Result<T, JsonError>;

fn problem<T>(text: impl Into<String>) -> Result<T> {
    Err(JsonError::new(text))
}
