//! HTTP with JSON for methods that `google.api.http` has given a path.

mod routes;
mod status;
mod template;

pub use routes::Rule;
pub(super) use routes::{Found, Routes};
pub(super) use status::{http_status, report};
pub use template::TemplateError;
