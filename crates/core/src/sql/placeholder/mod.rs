//! `?` and `:name` placeholders, rewritten to the form that the driver takes.

mod dialect;
mod parse_cache;
mod parsed_sql;
mod placeholders;
mod rewriter;
#[cfg(test)]
mod tests;

pub use dialect::Dialect;
pub use parse_cache::ParseCache;
pub use parsed_sql::{Params, ParsedSql};
