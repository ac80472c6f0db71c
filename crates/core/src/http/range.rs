//! Range requests (RFC 9110 §14).

use std::ops::Range;

/// Ranges of one request. With more the request is taken for an attack, and everything is sent.
const MOST: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    Everything,
    /// In the order of the request, none empty, together at most the size of the file.
    Parts(Vec<Range<u64>>),
    /// None of the ranges can be satisfied (416).
    Nothing,
}

/// The ranges that a Range field requests of `size` bytes. A field that is malformed, of another unit, or that requests the same bytes
/// many times is ignored (§14.2).
pub(super) fn wanted(field: &[u8], size: u64) -> Wanted {
    match parts(field, size) {
        None => Wanted::Everything,
        Some(parts) if parts.is_empty() => Wanted::Nothing,
        Some(parts) => Wanted::Parts(parts),
    }
}

/// Those that can be satisfied.
fn parts(field: &[u8], size: u64) -> Option<Vec<Range<u64>>> {
    let (unit, list) = field.split_at_checked(6)?;
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return None;
    }
    let mut parts = Vec::new();
    let mut asked = 0;
    let mut total = 0;
    for one in list.split(|byte| *byte == b',') {
        let one = one.trim_ascii();
        if one.is_empty() {
            continue;
        }
        asked += 1;
        if asked > MOST {
            return None;
        }
        let part = part(one, size)?;
        if !part.is_empty() {
            total += part.end - part.start;
            parts.push(part);
        }
    }
    (asked > 0 && total <= size).then_some(parts)
}

/// One range of the list; empty if it cannot be satisfied, `None` if it is malformed.
fn part(text: &[u8], size: u64) -> Option<Range<u64>> {
    let dash = text.iter().position(|byte| *byte == b'-')?;
    let (first, last) = (&text[..dash], &text[dash + 1..]);
    if first.is_empty() {
        return Some(size.saturating_sub(number(last)?)..size);
    }
    let first = number(first)?;
    let end = match last.is_empty() {
        true => size,
        false => {
            let last = number(last)?;
            if last < first {
                return None;
            }
            last.saturating_add(1).min(size)
        }
    };
    Some(first..end.max(first))
}

/// Parses digits only. Numbers that do not fit become the largest.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        Some(number.saturating_mul(10).saturating_add(digit))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    #[expect(
        clippy::single_range_in_vec_init,
        reason = "a list of one range is what is meant"
    )]
    fn single_ranges_are_cut_to_what_is_there() {
        let cases: [(&str, Wanted); 10] = [
            ("bytes=0-0", Wanted::Parts(vec![0..1])),
            ("bytes=2-5", Wanted::Parts(vec![2..6])),
            ("Bytes=7-", Wanted::Parts(vec![7..10])),
            ("bytes=-3", Wanted::Parts(vec![7..10])),
            ("bytes=-30", Wanted::Parts(vec![0..10])),
            (
                "bytes=9-99999999999999999999999",
                Wanted::Parts(vec![9..10]),
            ),
            ("bytes=10-", Wanted::Nothing),
            ("bytes=99999999999999999999999-", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=12-15, 20-", Wanted::Nothing),
        ];
        for (field, expected) in cases {
            assert_eq!(wanted(field.as_bytes(), 10), expected, "{field}");
        }
    }

    #[test]
    fn several_ranges_keep_their_order_and_lose_those_that_are_not_there() {
        let parts = wanted(b"bytes=5-6, ,0-1,50-60,-1", 10);
        assert_eq!(parts, Wanted::Parts(vec![5..7, 0..2, 9..10]));
    }

    #[test]
    fn malformed_or_excessive_ranges_select_the_whole_file() {
        let many = format!("bytes={}", "0-0,".repeat(MOST + 1));
        let fields = [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=5-4",
            "bytes=a-b",
            "bytes=1",
            "bytes=1-2-3",
            "bytes=+1-2",
            "bytes= 1 - 2",
            "lines=0-1",
            "bytes=0-,0-",
            "bytes 0-1",
            &many,
        ];
        for field in fields {
            assert_eq!(wanted(field.as_bytes(), 10), Wanted::Everything, "{field}");
        }
    }

    #[test]
    fn of_nothing_no_range_can_be_had() {
        for field in ["bytes=0-", "bytes=-1", "bytes=0-0"] {
            assert_eq!(wanted(field.as_bytes(), 0), Wanted::Nothing, "{field}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_asked_for_lies_within_what_is_there(field in "(bytes=)?[-0-9, a]{0,40}", size in 0_u64..2_000) {
            if let Wanted::Parts(parts) = wanted(field.as_bytes(), size) {
                prop_assert!(!parts.is_empty() && parts.len() <= MOST);
                prop_assert!(parts.iter().all(|part| part.start < part.end && part.end <= size));
                prop_assert!(parts.iter().map(|part| part.end - part.start).sum::<u64>() <= size);
            }
        }

        #[test]
        fn no_bytes_make_it_panic(field in proptest::collection::vec(any::<u8>(), 0..60), size: u64) {
            let _ = wanted(&field, size);
        }
    }
}
