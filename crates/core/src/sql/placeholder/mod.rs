//! Rewrites `?` and `:name` placeholders to the driver's form.

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
