//! How often properties are tried.

use proptest::prelude::ProptestConfig;

/// So many cases, or `PROPTEST_CASES` where that is more: `make test-properties`.
pub(crate) fn at_least(cases: u32) -> ProptestConfig {
    let asked_for = ProptestConfig::default().cases;
    ProptestConfig::with_cases(cases.max(asked_for))
}
