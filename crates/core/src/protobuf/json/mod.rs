//! The JSON mapping of proto3: converts between encoded messages and JSON by a layout.
//!
//! It works on encoded messages, not on PHP objects: JSON is not a hot path.

mod parse;
mod print;
mod text;
mod time;

pub use parse::from_json;
pub use print::to_json;

use thiserror::Error;

use super::limits::{Depth, MAX_DEPTH};

/// A message that JSON cannot express, or JSON that does not represent such a message. `path` is the place, such as `.items[2].price`.
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

fn enter(depth: Depth) -> Result<Depth> {
    let too_deep = |_| JsonError::new(format!("nested deeper than {MAX_DEPTH} levels"));
    depth.enter().map_err(too_deep)
}

fn problem<T>(text: impl Into<String>) -> Result<T> {
    Err(JsonError::new(text))
}
