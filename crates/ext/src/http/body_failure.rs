use weft_core::http::BodyError;

use crate::failure::Failure;

/// The failure of reading a request's body, as PHP sees it.
pub fn body_failure(error: BodyError) -> Failure {
    let kind = match error {
        BodyError::TooLarge { .. } => "http.body.too_large",
        BodyError::TimedOut { .. } | BodyError::TooSlow { .. } => "http.body.timed_out",
        BodyError::Incomplete { .. } => "http.body.incomplete",
        BodyError::Taken => "usage",
    };
    Failure::new(kind, error.to_string())
}
