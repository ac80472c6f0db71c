//! Counts of gRPC calls for PHP.

use std::time::SystemTime;

use ext_php_rs::prelude::*;
use ext_php_rs::types::ZendHashTable;

use weft_core::http::CallStats;

/// Appends started, succeeded, failed, and the time of the last start in seconds since 1970.
pub fn push_call_stats(row: &mut ZendHashTable, stats: &CallStats) -> PhpResult<()> {
    for count in [stats.started(), stats.succeeded(), stats.failed()] {
        row.push(count as i64)?;
    }
    let last = stats.last_started();
    let last = last.and_then(|last| last.duration_since(SystemTime::UNIX_EPOCH).ok());
    row.push(last.map(|last| last.as_secs_f64()))?;
    Ok(())
}
