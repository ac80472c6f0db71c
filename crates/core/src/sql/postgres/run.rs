//! Sending batches.

use super::batch::{Batch, Failure, Outcome};
use super::connection::{Connection, TransactionStatus};
use super::failure::ServerFailure;
use super::replies::Results;
use super::step::{Plan, Step, segment_length};
use crate::sql::{Error, Statement};

impl Connection {
    /// Sends a batch and reads its results.
    ///
    /// Statements this connection has not seen are prepared first, at the price of a round trip for all of them. After a
    /// failure the transaction's state is in [`status`](Self::status). Dropping the future leaves the connection in the
    /// middle of the answer; the pool cleans it.
    ///
    /// # Errors
    /// [`Error::ConnectionLost`]; what the server has against a statement is in [`Outcome::failure`].
    pub async fn run(&mut self, batch: Batch<'_>) -> Result<Outcome, Error> {
        let fresh = self.status() == TransactionStatus::Idle;
        let mut outcome = self.run_once(batch, true).await?;
        if fresh && self.forget_stale(&batch, &outcome) {
            if self.status() != TransactionStatus::Idle {
                self.rollback().await?;
            }
            // Behind a pooler other sessions still know the statements as they were: only one without a name is new.
            outcome = self.run_once(batch, false).await?;
        }
        self.cache.trim();
        Ok(outcome)
    }

    /// Ends the transaction, if there is one.
    pub async fn rollback(&mut self) -> Result<(), Error> {
        let rollback = Statement::new("ROLLBACK", vec![]);
        let outcome = self
            .run_once(Batch::of(std::slice::from_ref(&rollback)), true)
            .await?;
        outcome.failure.map_or(Ok(()), |failure| Err(failure.error))
    }

    /// `named`: by statements that are prepared; otherwise each is parsed for this one use.
    async fn run_once(&mut self, batch: Batch<'_>, named: bool) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        let commit = Self::commit_text();
        let mut steps = self.steps(&batch, &commit);
        if !named {
            steps.iter_mut().for_each(|step| step.plan = Plan::Inline);
        }
        while !steps.is_empty() && outcome.failure.is_none() {
            let length = match self.is_atomic(&batch) {
                true => steps.len(),
                false => segment_length(&steps),
            };
            let rest = steps.split_off(length);
            self.run_segment(steps, &batch, &mut outcome).await?;
            steps = rest;
            self.plan_again(&mut steps);
        }
        if let Some(failure) = outcome.failure.take() {
            outcome.failure = Some(failure.in_words_of(batch.statements));
        }
        Ok(outcome)
    }

    /// After a failure that a new plan may cure; the batch must have changed nothing.
    fn forget_stale(&mut self, batch: &Batch<'_>, outcome: &Outcome) -> bool {
        let stale = outcome.failure.as_ref().filter(|failure| failure.stale);
        match stale.and_then(|failure| batch.statements.get(failure.at)) {
            // The server may have forgotten all of them (`DEALLOCATE ALL`).
            Some(_) => {
                for statement in batch.statements {
                    self.cache.remove(&statement.sql);
                }
                if let Some(begin) = batch.begin {
                    self.cache.remove(begin);
                }
                self.cache.remove("COMMIT");
                true
            }
            None => false,
        }
    }

    async fn run_segment(
        &mut self,
        mut steps: Vec<Step<'_>>,
        batch: &Batch<'_>,
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        if let Some((at, failure)) = self.prepare_unknown(&mut steps).await? {
            outcome.failure = Some(rejected(&steps[at], failure));
            return Ok(());
        }
        let misfit = self.write_steps(&mut steps);
        if misfit.is_some() && self.is_atomic(batch) {
            // Alone, the statements before the misfit would be committed.
            outcome.failure = misfit;
            return self.withdraw().await;
        }
        if !steps.is_empty() {
            let commits = |step: &Step<'_>| step.is_control && step.sql.as_ref() == "COMMIT";
            self.commit_sent
                .set(self.is_atomic(batch) || steps.iter().any(commits));
            self.push_sync();
            let mut results = Results::new(steps.iter().map(Step::shape).collect());
            self.exchange(&mut results).await?;
            if results.failure.is_none() && results.done.len() != steps.len() {
                return Err(self.give_up("it did not answer every statement"));
            }
            self.settle(&steps, batch, results, outcome);
        }
        outcome.failure = outcome.failure.take().or(misfit);
        Ok(())
    }

    /// Takes back the steps written but not sent.
    async fn withdraw(&mut self) -> Result<(), Error> {
        self.link.out.truncate(self.closes);
        self.drain().await
    }

    /// The batch is an implicit transaction.
    fn is_atomic(&self, batch: &Batch<'_>) -> bool {
        batch.begin.is_none() && self.status() == TransactionStatus::Idle
    }

    fn settle(
        &self,
        steps: &[Step<'_>],
        batch: &Batch<'_>,
        results: Results,
        outcome: &mut Outcome,
    ) {
        let completed = results.done.len();
        for (step, done) in steps.iter().zip(results.done) {
            if !step.is_control {
                outcome.results.push(done.result);
            } else if done.rolled_back {
                outcome.failure = Some(undone(batch));
            }
        }
        if let Some(failure) = results.failure {
            outcome.failure = Some(match steps.get(completed) {
                Some(step) => rejected(step, failure),
                // Everything was executed: the implicit commit itself failed.
                None => uncommitted(batch, failure),
            });
        }
    }
}

fn rejected(step: &Step<'_>, failure: ServerFailure) -> Failure {
    Failure {
        at: step.at,
        stale: failure.is_stale_statement(),
        error: failure.into_error(step.sql),
    }
}

fn uncommitted(batch: &Batch<'_>, failure: ServerFailure) -> Failure {
    Failure {
        at: batch.statements.len(),
        stale: false,
        error: match batch.statements {
            [only] => failure.into_error(&only.source),
            _ => failure.into_error("COMMIT"),
        },
    }
}

fn undone(batch: &Batch<'_>) -> Failure {
    Failure {
        at: batch.statements.len(),
        stale: false,
        error: Error::Usage {
            message: "the transaction had failed before: COMMIT was answered by ROLLBACK"
                .to_owned(),
        },
    }
}
