use std::time::Duration;

/// How a pool behaves. Durations of zero switch a feature off unless said otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolOptions {
    /// Stands in every error message. Default `default`.
    pub name: String,
    /// The most connections, opened when somebody needs them. At least 1, default 10.
    pub size: usize,
    /// Idle connections that are kept ready, opened without anybody waiting. At most `size`; default 0.
    pub minimum_idle: usize,
    /// Connections beyond `minimum_idle` that were not used for so long are closed. Default 10 min.
    pub idle_timeout: Duration,
    /// A connection is not used beyond this age. Default 30 min.
    pub max_lifetime: Duration,
    /// The part of `max_lifetime`, 0 to 1, over which the ends of connections opened together are spread. Default 0.4.
    pub lifetime_jitter: f64,
    /// How long past its lifetime a connection still goes from one borrower to the next while somebody waits. With zero it
    /// is renewed when it comes back next. Default 1 s.
    pub renewal_timeout: Duration,
    /// How long a borrower waits. Zero: only for a connection that can be opened for it. Default 30 s.
    pub borrow_timeout: Duration,
    /// How long the cleaning of a returned connection may take before it is closed instead. Zero: only what needs no
    /// cleaning is kept. Default 5 s.
    pub return_timeout: Duration,
    /// How long opening one may take before that counts as a failure. Default 30 s; zero: as long as it takes.
    pub create_timeout: Duration,
    /// An idle connection is asked so often whether it still works. Default off.
    pub keepalive_interval: Duration,
    /// One that nobody has heard from for longer is asked before it is lent. Default 30 s.
    pub validate_after: Duration,
    /// How long such a question may take. Default 1 s.
    pub validation_timeout: Duration,
    /// A connection lent for longer is reported. Default off.
    pub leak_threshold: Duration,
    /// How many are opened at a time. At least 1, default 8.
    pub connect_limit: usize,
    /// While the server is down, refuse borrowers at once instead of letting them wait for it. Default true.
    pub fail_fast: bool,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            size: 10,
            minimum_idle: 0,
            idle_timeout: Duration::from_secs(600),
            max_lifetime: Duration::from_secs(1_800),
            lifetime_jitter: 0.4,
            renewal_timeout: Duration::from_secs(1),
            borrow_timeout: Duration::from_secs(30),
            return_timeout: Duration::from_secs(5),
            create_timeout: Duration::from_secs(30),
            keepalive_interval: Duration::ZERO,
            validate_after: Duration::from_secs(30),
            validation_timeout: Duration::from_secs(1),
            leak_threshold: Duration::ZERO,
            connect_limit: 8,
            fail_fast: true,
        }
    }
}

/// `None` where zero means off.
pub(super) fn enabled(duration: Duration) -> Option<Duration> {
    (!duration.is_zero()).then_some(duration)
}
