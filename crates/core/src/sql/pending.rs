use std::pin::Pin;

use super::Error;

/// A result that is on its way. Boxed, since the drivers' futures differ; one allocation beside a round trip to a database.
pub type Pending<T> = Pin<Box<dyn Future<Output = Result<T, Error>>>>;
