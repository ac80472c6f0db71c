//! The hubs of this process.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use super::config::{Config, Location};
use super::hub::{Hub, lock};
use super::writer;
use crate::sql::Error;

static HUBS: Mutex<Vec<Weak<Hub>>> = Mutex::new(Vec::new());

/// The hub of the file, started if this process has none yet. Registers one more client.
pub(super) fn join(mut config: Config) -> Result<Arc<Hub>, Error> {
    if let Location::File(path) = &config.location {
        config.location = Location::File(resolve(path));
    }
    let mut hubs = lock(&HUBS);
    hubs.retain(|hub| hub.strong_count() > 0);
    let existing = hubs
        .iter()
        .filter_map(Weak::upgrade)
        .find(|hub| hub.serves(&config.location) && hub.add_client());
    if let Some(hub) = existing {
        return Ok(hub);
    }
    let hub = Arc::new(Hub::new(config));
    hub.start_thread("weft-sqlite-writer", writer::run)?;
    hubs.push(Arc::downgrade(&hub));
    Ok(hub)
}

/// Ends every SQLite thread of this process: what is queued is still run, open transactions are rolled back, running
/// reads are interrupted. Returns whether all were gone within `timeout`.
///
/// For hosts that unload this code before the process ends.
pub fn shutdown(timeout: Duration) -> bool {
    let deadline = Instant::now() + timeout;
    let hubs: Vec<Arc<Hub>> = lock(&HUBS).iter().filter_map(Weak::upgrade).collect();
    let own = |hub: &&Arc<Hub>| hub.is_of_this_process();
    for hub in hubs.iter().filter(own) {
        hub.reader_controls
            .iter()
            .for_each(|control| control.stop());
        hub.close();
    }
    hubs.iter().filter(own).all(|hub| hub.gone_by(deadline))
}

/// The path every `Database` of a file agrees on, whether the file exists or not.
fn resolve(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if let Ok(existing) = fs::canonicalize(&absolute) {
        return existing;
    }
    let folder = absolute
        .parent()
        .and_then(|folder| fs::canonicalize(folder).ok());
    match (folder, absolute.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => absolute,
    }
}
