//! The engines of this process, by file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use super::config::{Config, Location};
use super::engine::{Engine, lock};
use super::{reader, writer};
use crate::sql::Error;

static ENGINES: Mutex<Vec<Weak<Engine>>> = Mutex::new(Vec::new());

/// The engine of the file, which is started if necessary. Registers a client.
pub(super) fn join(mut config: Config) -> Result<Arc<Engine>, Error> {
    if let Location::File(path) = &config.location {
        config.location = Location::File(resolve(path));
    }
    let mut hubs = lock(&ENGINES);
    hubs.retain(|engine| engine.strong_count() > 0);
    let existing = hubs
        .iter()
        .filter_map(Weak::upgrade)
        .find(|engine| engine.serves(&config.location) && engine.add_client());
    if let Some(engine) = existing {
        return Ok(engine);
    }
    let engine = Arc::new(Engine::new(config, reader::run));
    engine.start_thread("weft-sqlite-writer", writer::run)?;
    hubs.push(Arc::downgrade(&engine));
    Ok(engine)
}

/// Ends every SQLite thread of this process: queued jobs still run, open transactions are rolled back, running
/// reads are interrupted. Returns whether all threads ended within `timeout`.
///
/// For hosts that unload this code before the process ends.
pub fn shutdown(timeout: Duration) -> bool {
    let deadline = Instant::now() + timeout;
    let hubs: Vec<Arc<Engine>> = lock(&ENGINES).iter().filter_map(Weak::upgrade).collect();
    let own = |engine: &&Arc<Engine>| engine.is_of_this_process();
    for engine in hubs.iter().filter(own) {
        engine
            .reader_controls
            .iter()
            .for_each(|control| control.stop());
        engine.close();
    }
    hubs.iter()
        .filter(own)
        .all(|engine| engine.has_ended_by(deadline))
}

/// The canonical path of a file, which need not exist.
fn resolve(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if let Ok(existing) = fs::canonicalize(&absolute) {
        return existing;
    }
    let directory = absolute
        .parent()
        .and_then(|directory| fs::canonicalize(directory).ok());
    match (directory, absolute.file_name()) {
        (Some(directory), Some(name)) => directory.join(name),
        _ => absolute,
    }
}
