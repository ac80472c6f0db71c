//! The options of an SQLite database and their form in a DSN.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use crate::sql::Error;

/// The location and options of an SQLite database.
///
/// The first `Database` that opens a file in a process sets its options; later ones share its writer.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub location: Location,
    /// `synchronous=full|normal|off`. Default full.
    pub synchronous: Synchronous,
    /// `busy_timeout=SECONDS`: how long to wait for another process's lock. Default 5.
    pub busy_timeout: Duration,
    /// `readers=N`: threads for reading, 1 to 64. Default 2. An in-memory database reads on its writer.
    pub readers: usize,
    /// `cache_size=BYTES`: page cache of each connection. Default 8 MiB.
    pub cache_size: usize,
    /// `group=N`: maximum number of jobs that share one commit, 1 to 100,000. Default 256.
    pub group: usize,
    /// `transaction_timeout=SECONDS`: how long one transaction may hold the writer. Default 30.
    pub transaction_timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Location {
    /// Private to the `Database` that opens it; gone when that is dropped.
    Memory,
    File(PathBuf),
}

/// The durability of an answered commit (SQLite's `PRAGMA synchronous`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synchronous {
    /// An answered commit survives a killed process and a power failure.
    Full,
    /// An answered commit survives a killed process; a power failure may undo the latest commits.
    Normal,
    /// As normal, but a power failure may corrupt the database.
    Off,
}

const OPTIONS: &str = "synchronous, busy_timeout, readers, cache_size, group, transaction_timeout";

impl Config {
    /// Reads `sqlite:///absolute/path.db`, `sqlite:relative.db` or `sqlite::memory:`, each with `?option=value&…`.
    /// A `%` in the path starts a percent-encoded byte.
    ///
    /// # Errors
    /// [`Error::Dsn`] naming the part that cannot be read.
    pub fn parse(dsn: &str) -> Result<Self, Error> {
        Self::read(dsn).map_err(|reason| Error::Dsn {
            dsn: dsn.to_owned(),
            reason,
        })
    }

    /// The defaults for a database at `location`.
    pub fn at(location: Location) -> Self {
        Self {
            location,
            synchronous: Synchronous::Full,
            busy_timeout: Duration::from_secs(5),
            readers: 2,
            cache_size: 8 << 20,
            group: 256,
            transaction_timeout: Duration::from_secs(30),
        }
    }

    fn read(dsn: &str) -> Result<Self, String> {
        let rest = dsn
            .strip_prefix("sqlite:")
            .ok_or("it does not begin with \"sqlite:\"")?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut config = Self::at(location(path)?);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| format!("option \"{pair}\" has no value"))?;
            config.set(name, value)?;
        }
        Ok(config)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "synchronous" => self.synchronous = synchronous(value)?,
            "busy_timeout" => self.busy_timeout = seconds(name, value)?,
            "readers" => self.readers = integer(name, value, 1, 64)?,
            "cache_size" => self.cache_size = integer(name, value, 4096, 1 << 40)?,
            "group" => self.group = integer(name, value, 1, 100_000)?,
            "transaction_timeout" => self.transaction_timeout = seconds(name, value)?,
            _ => {
                return Err(format!("option \"{name}\" is unknown; there are {OPTIONS}"));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => formatter.write_str("SQLite :memory:"),
            Self::File(path) => write!(formatter, "SQLite database \"{}\"", path.display()),
        }
    }
}

impl Synchronous {
    pub(super) fn keyword(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
            Self::Off => "OFF",
        }
    }
}

fn location(path: &str) -> Result<Location, String> {
    if path == ":memory:" {
        return Ok(Location::Memory);
    }
    let path = match path.strip_prefix("//") {
        Some(absolute) if absolute.starts_with('/') => absolute,
        Some(_) => {
            return Err(
                "write sqlite:///absolute/path.db (three slashes) or sqlite:relative.db".into(),
            );
        }
        None => path,
    };
    let decoded = percent_decode_str(path)
        .decode_utf8()
        .map_err(|_| "the path is not UTF-8 after percent-decoding")?;
    match &*decoded {
        "" => Err("it names no file; for a database in memory write sqlite::memory:".into()),
        path if path.contains('\0') => Err("the path contains a NUL byte".into()),
        path => Ok(Location::File(PathBuf::from(path))),
    }
}

fn synchronous(value: &str) -> Result<Synchronous, String> {
    match value {
        "full" => Ok(Synchronous::Full),
        "normal" => Ok(Synchronous::Normal),
        "off" => Ok(Synchronous::Off),
        _ => Err(format!(
            "synchronous is \"{value}\"; it must be full, normal or off"
        )),
    }
}

fn seconds(name: &str, value: &str) -> Result<Duration, String> {
    f64::from_str(value)
        .ok()
        .filter(|seconds| (0.001..=86_400.0).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| {
            format!("{name} is \"{value}\"; it must be a number of seconds from 0.001 to 86400")
        })
}

fn integer(name: &str, value: &str, least: usize, most: usize) -> Result<usize, String> {
    usize::from_str(value)
        .ok()
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| {
            format!("{name} is \"{value}\"; it must be a whole number from {least} to {most}")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> Location {
        Location::File(PathBuf::from(path))
    }

    #[test]
    fn every_form_of_a_location_is_understood() {
        for (dsn, location) in [
            ("sqlite::memory:", Location::Memory),
            ("sqlite:///var/lib/app.db", file("/var/lib/app.db")),
            ("sqlite:/var/lib/app.db", file("/var/lib/app.db")),
            ("sqlite:data/app.db", file("data/app.db")),
            (
                "sqlite:///with%20space%3F.db?readers=3",
                file("/with space?.db"),
            ),
        ] {
            assert_eq!(Config::parse(dsn).unwrap().location, location, "{dsn}");
        }
    }

    #[test]
    fn options_override_the_defaults() {
        let config = Config::parse(
            "sqlite:a.db?synchronous=normal&busy_timeout=0.5&readers=4&cache_size=65536&group=10&transaction_timeout=2",
        )
        .unwrap();
        let expected = Config {
            location: file("a.db"),
            synchronous: Synchronous::Normal,
            busy_timeout: Duration::from_millis(500),
            readers: 4,
            cache_size: 65_536,
            group: 10,
            transaction_timeout: Duration::from_secs(2),
        };
        assert_eq!(config, expected);
        assert_eq!(
            Config::parse("sqlite:a.db").unwrap(),
            Config::at(file("a.db"))
        );
    }

    #[test]
    fn a_wrong_dsn_says_what_is_wrong() {
        for (dsn, reason) in [
            ("mysql:a", "does not begin with"),
            ("sqlite:", "names no file"),
            ("sqlite://host/a.db", "three slashes"),
            ("sqlite:a?readers", "\"readers\" has no value"),
            (
                "sqlite:a?readers=0",
                "readers is \"0\"; it must be a whole number from 1 to 64",
            ),
            (
                "sqlite:a?colour=red",
                "option \"colour\" is unknown; there are synchronous",
            ),
            ("sqlite:a?synchronous=extra", "full, normal or off"),
            ("sqlite:a?busy_timeout=NaN", "seconds"),
            ("sqlite:%FF", "UTF-8"),
            ("sqlite:a%00b", "NUL"),
        ] {
            let message = Config::parse(dsn).unwrap_err().to_string();
            assert!(message.contains(reason), "{dsn}: {message}");
        }
    }
}
