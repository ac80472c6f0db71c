//! Where the deferred statements of a transaction were given, for failures that are reported later.

use std::cell::RefCell;
use std::collections::VecDeque;

use weft_core::sql::{Error, Transaction};

use crate::caller::Place;
use crate::failure::{Detail, Failure};
use crate::sql_failure::failure;

/// The place of each statement that was not answered yet, by its index in the transaction.
#[derive(Default)]
pub struct StatementPlaces {
    places: RefCell<Places>,
}

#[derive(Default)]
struct Places {
    /// Index of the first in `pending`.
    first: usize,
    pending: VecDeque<Option<Place>>,
    /// The failed statement's, which later calls report again.
    failed: Option<(usize, Place)>,
}

impl StatementPlaces {
    /// Notes where the statement with this index was given. Indexes come in order, with gaps where the extension's own
    /// statements were.
    pub fn note(&self, index: usize, place: Option<Place>) {
        let mut places = self.places.borrow_mut();
        if places.pending.is_empty() {
            places.first = index;
        }
        let known = index.saturating_sub(places.first);
        places.pending.resize(known, None);
        places.pending.push_back(place);
    }

    /// The index after the last statement noted.
    pub fn end(&self) -> usize {
        let places = self.places.borrow();
        places.first + places.pending.len()
    }

    /// The statements before `end` were answered. The error of one of them gets its place.
    pub fn settle(
        &self,
        end: usize,
        outcome: Result<(), Error>,
        transaction: &Transaction,
    ) -> Result<(), Failure> {
        let outcome = outcome.map_err(|error| self.failure(error, transaction));
        let mut places = self.places.borrow_mut();
        let answered = end.saturating_sub(places.first).min(places.pending.len());
        places.pending.drain(..answered);
        places.first += answered;
        outcome
    }

    /// The failure of a statement, with the place where that was given if it is known.
    pub fn failure(&self, error: Error, transaction: &Transaction) -> Failure {
        if !matches!(error, Error::Server(_) | Error::Parameter { .. }) {
            return failure(error);
        }
        let place = transaction.failed().and_then(|index| self.place(index));
        let failure = failure(error);
        match place {
            Some(place) => at(failure, &place),
            None => failure,
        }
    }

    fn place(&self, index: usize) -> Option<Place> {
        let mut places = self.places.borrow_mut();
        if let Some((failed, place)) = &places.failed
            && *failed == index
        {
            return Some(place.clone());
        }
        let at = index.checked_sub(places.first)?;
        let place = places.pending.get(at)?.clone()?;
        places.failed = Some((index, place.clone()));
        Some(place)
    }
}

fn at(failure: Failure, place: &Place) -> Failure {
    let mut failure = failure.with("givenAt", Detail::Text(Some(place.to_string())));
    failure.message = format!("{} [given at {place}]", failure.message);
    failure
}
