//! Runs a test's future as the reactor runs futures: on one thread, on a `LocalSet`.
//!
//! Test files include this file with `#[path]`; it depends on Tokio only.

use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::timeout;

/// A test that takes longer hangs.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Runs `future` to its end, for `limit` at most.
pub fn run_for<T>(limit: Duration, future: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        timeout(limit, future)
            .await
            .expect("the test took too long")
    })
}

/// Runs `future` to its end, for [`LIMIT`] at most.
#[allow(dead_code, reason = "some test files need another limit")]
pub fn run<T>(future: impl Future<Output = T>) -> T {
    run_for(LIMIT, future)
}
