use std::pin::Pin;

use super::Error;

/// A pending result. Boxed because the drivers' futures differ; the cost is one allocation per round trip.
pub type Pending<T> = Pin<Box<dyn Future<Output = Result<T, Error>>>>;
