//! Statements whose rows are read in chunks.

use postgres_protocol::message::frontend;

use super::connection::Connection;
use super::decode::RowShape;
use super::extended_query::{Plan, write_step};
use super::replies::Chunk;
use crate::sql::{Error, Statement};

impl Connection {
    /// Starts a statement and reads its first chunk of rows. `named`: with a prepared statement.
    pub(super) async fn open_portal(
        &mut self,
        statement: &Statement,
        size: u32,
        named: bool,
    ) -> Result<Chunk, Error> {
        let shape = loop {
            let mut steps = [self.step(&statement.sql, &statement.params, 0, false)];
            if !named {
                steps[0].plan = Plan::Inline;
            }
            if let Some((_, failure)) = self.prepare_unknown(&mut steps).await? {
                return Err(failure.into_error(&statement.sql));
            }
            self.close_evicted();
            let start = self.link.out.len();
            let [step] = steps;
            match write_step(&step, row_limit(size), &mut self.link.out) {
                Ok(()) => {
                    self.session_state.add(step.session_state());
                    break step.shape();
                }
                Err(error) => {
                    self.link.out.truncate(start);
                    if !named || !step.is_cached {
                        return Err(error);
                    }
                    // A column may have got another type since the statement was prepared.
                    self.forget(&statement.sql);
                }
            }
        };
        self.cache.trim();
        self.read_chunk(Chunk::first(shape, size as usize)).await
    }

    /// Reads the next rows of the open portal.
    pub(super) async fn next_chunk(&mut self, shape: RowShape, size: u32) -> Result<Chunk, Error> {
        self.write("", |out| frontend::execute("", row_limit(size), out))?;
        self.read_chunk(Chunk::next(shape, size as usize)).await
    }

    async fn read_chunk(&mut self, mut chunk: Chunk) -> Result<Chunk, Error> {
        self.push_flush();
        self.exchange(&mut chunk).await?;
        Ok(chunk)
    }
}

fn row_limit(size: u32) -> i32 {
    i32::try_from(size.max(1)).unwrap_or(i32::MAX)
}
