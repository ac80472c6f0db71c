/// The most lanes a server has.
pub(crate) const LANES: usize = 3;

/// Limits of one lane: requests of one kind, with a budget of their own, so that requests that last do not take the places of
/// requests that end soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneLimits {
    /// The name of its requests in messages, in the plural.
    pub(crate) name: &'static str,
    /// Requests whose handlers run at a time.
    pub(crate) running: usize,
    /// Open requests of one connection, whether they wait or their handlers run.
    pub(crate) per_connection: usize,
    /// Requests beyond `running` wait in the queue. Otherwise they are refused, and `running` bounds the open ones.
    pub(crate) queues: bool,
}

/// Limits of one concurrency limit, which the requests of several lanes may share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConcurrencyLimits {
    /// The name of what it limits, for messages.
    pub name: String,
    /// Requests that wait for a handler or whose handlers run.
    pub running: usize,
    /// Requests that wait for one of those to end; more of them are refused.
    pub queue: usize,
}

/// Limits of a server, and the part of them one client may take.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Capacity {
    /// The name of requests in messages, in the plural.
    pub(crate) noun: &'static str,
    pub(crate) connections: usize,
    /// Requests that arrive or wait, in all lanes that queue.
    pub(crate) queue: usize,
    /// In the order of the time their requests last, the shortest first; at most [`LANES`].
    pub(crate) lanes: Vec<LaneLimits>,
    pub(crate) concurrency: Vec<ConcurrencyLimits>,
    /// The part of `connections`, of `queue` and of `running` of each lane that one client address may take, above 0 and up to 1.
    /// Connections without an address have no such limit.
    pub(crate) client_share: f64,
    /// Bytes of large requests that one connection may have waiting for their handlers.
    pub(crate) buffered_bytes: usize,
}

impl Capacity {
    /// The part of `limit` that one client may take, at least 1.
    pub(crate) fn share(&self, limit: usize) -> usize {
        let share = (limit as f64 * self.client_share).ceil() as usize;
        share.clamp(1, limit.max(1))
    }

    /// How many handlers may run at a time.
    pub(crate) fn handlers(&self) -> usize {
        self.lanes
            .iter()
            .fold(0, |sum, lane| sum.saturating_add(lane.running))
    }

    /// `running` of each lane, fitted to the number of fibers: at least 1 each. Where there are too few fibers, the second lane and
    /// those after it get at most half of them, the third at most a quarter.
    pub(crate) fn fitted(&self, fibers: usize) -> [usize; LANES] {
        let mut fitted = [0; LANES];
        for (fitted, lane) in fitted.iter_mut().zip(&self.lanes) {
            *fitted = lane.running;
        }
        if self.handlers() <= fibers {
            return fitted;
        }
        let mut taken = 0;
        for (index, lane) in self.lanes.iter().enumerate().rev() {
            let part = fibers.div_ceil(1 << index).saturating_sub(taken).max(1);
            fitted[index] = lane.running.min(part);
            taken += fitted[index];
        }
        fitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacity(running: &[usize]) -> Capacity {
        let lane = |running: &usize| LaneLimits {
            name: "requests",
            running: *running,
            per_connection: usize::MAX,
            queues: true,
        };
        Capacity {
            noun: "requests",
            connections: 10,
            queue: 10,
            lanes: running.iter().map(lane).collect(),
            concurrency: Vec::new(),
            client_share: 0.5,
            buffered_bytes: 0,
        }
    }

    #[test]
    fn no_more_handlers_run_than_there_are_fibers_for_and_one_of_each_lane_at_least() {
        let three = capacity(&[1_000, 2_000, 1_000]);
        assert_eq!(three.fitted(4_000), [1_000, 2_000, 1_000]);
        assert_eq!(three.fitted(200), [100, 50, 50]);
        for fibers in 3..5_000 {
            let fitted = three.fitted(fibers);
            assert!(
                fitted.iter().sum::<usize>() <= fibers,
                "{fibers}: {fitted:?}"
            );
            assert!(fitted.iter().all(|running| *running > 0));
        }
        assert_eq!(three.fitted(1), [1, 1, 1]);
    }

    #[test]
    fn requests_that_last_get_at_most_half_of_too_few_fibers() {
        let two = capacity(&[4, 4]);
        assert_eq!(two.fitted(5)[..2], [2, 3]);
        assert_eq!(two.fitted(1)[..2], [1, 1]);
        assert_eq!(two.fitted(two.handlers())[..2], [4, 4]);
        assert_eq!(capacity(&[1_000, 2]).fitted(100)[..2], [98, 2]);
    }

    #[test]
    fn a_client_gets_its_share_and_at_least_one() {
        let capacity = capacity(&[1]);
        let shares = [1, 3, 10, usize::MAX].map(|limit| capacity.share(limit));
        assert_eq!(shares[..3], [1, 2, 5]);
        assert!(shares[3] >= usize::MAX / 2);
    }
}
