//! HTTP with JSON for methods with a `google.api.http` rule.

mod routes;
mod status;
mod template;

pub use routes::Rule;
pub(super) use routes::{Found, Routes};
pub(super) use status::{http_status, report};
pub use template::TemplateError;
