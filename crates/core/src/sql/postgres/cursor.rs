//! Statements whose rows are read in chunks.

use postgres_protocol::message::frontend;

use super::connection::Connection;
use super::decode::RowShape;
use super::extended_query::{Plan, Step, write_step};
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
        let mut steps = vec![self.step(&statement.sql, &statement.params, 0, false)];
        if !named {
            steps.iter_mut().for_each(|step| step.plan = Plan::Inline);
        }
        if let Some((_, failure)) = self.prepare_unknown(&mut steps).await? {
            return Err(failure.into_error(&statement.sql));
        }
        self.close_evicted();
        let start = self.link.out.len();
        for step in &steps {
            if let Err(error) = write_step(step, row_limit(size), &mut self.link.out) {
                self.link.out.truncate(start);
                return Err(error);
            }
            self.session_state.add(step.session_state());
        }
        let shape = steps.first().map(Step::shape).unwrap_or_default();
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
