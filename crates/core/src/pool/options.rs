use std::time::Duration;

/// The configuration of a pool. A duration of zero disables its feature unless stated otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolOptions {
    /// Names the pool in error messages and metrics. Default `default`.
    pub name: String,
    /// Maximum of connections. They are opened on demand. At least 1, default 10.
    pub size: usize,
    /// Idle connections that are kept open in advance. At most `size`, default 0.
    pub minimum_idle: usize,
    /// Idle connections beyond `minimum_idle` are closed after this time. Default 10 min.
    pub idle_timeout: Duration,
    /// Maximum age of a connection. Default 30 min.
    pub max_lifetime: Duration,
    /// Fraction of `max_lifetime`, 0 to 1, over which the ends of connections are spread that were opened together.
    /// Default 0.4.
    pub lifetime_jitter: f64,
    /// How long after its lifetime a connection may still be lent while borrowers wait. With zero it is closed at its next
    /// return. Default 1 s.
    pub renewal_timeout: Duration,
    /// How long a borrow waits. With zero it waits only for a connection that is being opened for it. Default 30 s.
    pub borrow_timeout: Duration,
    /// How long cleaning a returned connection may take; then it is closed. With zero, only connections that need no cleaning
    /// are kept. Default 5 s.
    pub return_timeout: Duration,
    /// How long opening a connection may take. Default 30 s; zero: unlimited.
    pub create_timeout: Duration,
    /// How often an idle connection is validated. Default off.
    pub keepalive_interval: Duration,
    /// A connection that was unused for this time is validated before it is lent. Default 30 s.
    pub validate_after: Duration,
    /// How long a validation may take. Default 1 s.
    pub validation_timeout: Duration,
    /// A connection that is lent for longer is reported as a leak. Default off.
    pub leak_threshold: Duration,
    /// How many connections are opened at a time. At least 1, default 8.
    pub connect_limit: usize,
    /// Whether borrows are refused at once while the server is down, instead of waiting for it. Default true.
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

/// `None` when the duration is zero.
pub(super) fn enabled(duration: Duration) -> Option<Duration> {
    (!duration.is_zero()).then_some(duration)
}
