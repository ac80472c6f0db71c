//! The number of cases that property tests run.

use proptest::prelude::ProptestConfig;

/// `cases`, or `PROPTEST_CASES` if that is more: `make test-properties`.
pub(crate) fn with_at_least(cases: u32) -> ProptestConfig {
    let requested = ProptestConfig::default().cases;
    ProptestConfig::with_cases(cases.max(requested))
}
