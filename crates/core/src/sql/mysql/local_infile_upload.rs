//! Sends the file of `LOAD DATA LOCAL INFILE`.

use std::fs::File;
use std::io::{self, Read};

use super::connection::Connection;
use super::local_infile::HINT;
use super::local_infile_name::local_file;
use crate::blocking::{self, Purpose};
use crate::sql::error::excerpt;
use crate::sql::{Error, ServerError};

const FILE_PART_BYTES: usize = 256 * 1024;

impl Connection {
    /// Sends the file that the server requests, if it requests one and if `sql`, the running statement, names it.
    ///
    /// # Errors
    /// [`Error::Server`] when the file is refused, [`Error::Parameter`] when it cannot be read; the answer of the server has
    /// been read by then.
    pub(super) async fn serve_file(&mut self, sql: &str) -> Result<(), Error> {
        let Some(name) = self.local_infile.asked.take() else {
            return Ok(());
        };
        self.local_infile.is_being_sent = true;
        let outcome = match self.check_file(&name, sql) {
            Ok(path) => self.send_file(&path, sql).await?,
            Err(refusal) => Err(refusal),
        };
        self.push_file_part(&[]);
        self.flush().await?;
        self.local_infile.is_being_sent = false;
        match outcome {
            Ok(()) => Ok(()),
            Err(error) => {
                self.drain().await?;
                Err(error)
            }
        }
    }

    fn check_file(&self, name: &[u8], sql: &str) -> Result<String, Error> {
        let shown = String::from_utf8_lossy(name);
        if !self.local_infile.is_allowed {
            let message = format!("the server requested the file \"{shown}\", which is refused");
            return Err(refusal(message, sql));
        }
        match local_file(sql, self.has_backslash_escapes()) {
            Some(path) if path.as_bytes() == name => Ok(path),
            _ => {
                let message = format!(
                    "the server requested the file \"{shown}\", which is not the one that the statement names"
                );
                Err(refusal(message, sql))
            }
        }
    }

    /// The outer error is the connection's, the inner one the file's.
    async fn send_file(&mut self, path: &str, sql: &str) -> Result<Result<(), Error>, Error> {
        let unreadable = |error: std::io::Error| {
            Error::parameter(sql, format!("the file \"{path}\" cannot be read: {error}"))
        };
        let mut source = match Source::open(path).await {
            Ok(source) => source,
            Err(error) => return Ok(Err(unreadable(error))),
        };
        loop {
            source = match source.read().await {
                Ok(source) => source,
                Err(error) => return Ok(Err(unreadable(error))),
            };
            if source.part().is_empty() {
                return Ok(Ok(()));
            }
            self.push_file_part(source.part());
            self.flush().await?;
        }
    }
}

/// A file that is read in parts on a thread for files, because the disk may be slow, or the file may be a pipe without
/// a writer.
struct Source {
    file: File,
    buffer: Vec<u8>,
    length: usize,
}

impl Source {
    async fn open(path: &str) -> io::Result<Self> {
        let path = path.to_owned();
        let open = move || {
            Ok(Self {
                file: File::open(path)?,
                buffer: vec![0; FILE_PART_BYTES],
                length: 0,
            })
        };
        blocking::run(Purpose::Files, open).await?
    }

    /// Reads the next part; an empty one is the end.
    async fn read(mut self) -> io::Result<Self> {
        let read = move || {
            self.length = self.file.read(&mut self.buffer)?;
            Ok(self)
        };
        blocking::run(Purpose::Files, read).await?
    }

    fn part(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

fn refusal(message: String, sql: &str) -> Error {
    Error::Server(Box::new(ServerError {
        sqlstate: "42501".to_owned(),
        message,
        detail: None,
        hint: Some(HINT.to_owned()),
        constraint: None,
        code: None,
        is_repeatable: false,
        statement: excerpt(sql),
    }))
}
