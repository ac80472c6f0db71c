//! Conditional requests (RFC 9110 §13).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::HeaderMap;
use hyper::header::{self, HeaderName, HeaderValue};

/// The validators of a representation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Validators<'a> {
    /// An entity tag, `"…"` or `W/"…"`.
    pub(super) tag: &'a [u8],
    pub(super) modified: SystemTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Proceed,
    /// 304
    NotModified,
    /// 412
    Failed,
}

impl Validators<'_> {
    /// Evaluates the preconditions of a GET or HEAD in the order of §13.2.2.
    pub(super) fn evaluate(&self, request: &HeaderMap) -> Verdict {
        if request.contains_key(header::IF_MATCH) {
            if !self.is_named(request, &header::IF_MATCH, is_same_strong) {
                return Verdict::Failed;
            }
        } else if let Some(date) = date(request, &header::IF_UNMODIFIED_SINCE)
            && whole_seconds(self.modified) > date
        {
            return Verdict::Failed;
        }
        let is_unchanged = match request.contains_key(header::IF_NONE_MATCH) {
            true => self.is_named(request, &header::IF_NONE_MATCH, is_same_weak),
            false => date(request, &header::IF_MODIFIED_SINCE)
                .is_some_and(|date| whole_seconds(self.modified) <= date),
        };
        match is_unchanged {
            true => Verdict::NotModified,
            false => Verdict::Proceed,
        }
    }

    /// Whether ranges may be sent: If-Range is absent or names this representation (§13.1.5).
    pub(super) fn allow_ranges(&self, request: &HeaderMap) -> bool {
        let Some(field) = request.get(header::IF_RANGE) else {
            return true;
        };
        let field = field.as_bytes().trim_ascii();
        if field.ends_with(b"\"") {
            return is_same_strong(field, self.tag);
        }
        parse_date(field).is_some_and(|date| date == whole_seconds(self.modified))
    }

    fn is_named(
        &self,
        request: &HeaderMap,
        name: &HeaderName,
        is_same: fn(&[u8], &[u8]) -> bool,
    ) -> bool {
        let mut fields = request.get_all(name).iter().map(HeaderValue::as_bytes);
        fields.any(|field| {
            field.trim_ascii() == b"*" || tags(field).any(|tag| is_same(tag, self.tag))
        })
    }
}

/// §8.8.3.2: neither is weak.
fn is_same_strong(one: &[u8], other: &[u8]) -> bool {
    one == other && !one.starts_with(b"W/")
}

fn is_same_weak(one: &[u8], other: &[u8]) -> bool {
    opaque(one) == opaque(other)
}

fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// The entity tags of a list, up to where it is malformed. A tag may have commas in it.
fn tags(mut list: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        while let [b' ' | b'\t' | b',', rest @ ..] = list {
            list = rest;
        }
        let weak = if list.starts_with(b"W/") { 2 } else { 0 };
        let (b'"', rest) = list.get(weak..)?.split_first()? else {
            return None;
        };
        let length = rest.iter().position(|byte| *byte == b'"')?;
        let (tag, rest) = list.split_at(weak + length + 2);
        list = rest;
        Some(tag)
    })
}

fn date(request: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    let mut fields = request.get_all(name).iter();
    let only = fields.next().filter(|_| fields.next().is_none())?;
    parse_date(only.as_bytes())
}

pub(super) fn parse_date(field: &[u8]) -> Option<SystemTime> {
    httpdate::parse_http_date(std::str::from_utf8(field).ok()?).ok()
}

/// Dates of HTTP have no fractions.
pub(super) fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const THEN: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    fn state() -> Validators<'static> {
        let modified = UNIX_EPOCH + Duration::from_millis(784_111_777_900);
        let tag = b"\"a,b\"";
        Validators { tag, modified }
    }

    fn request(fields: &[(HeaderName, &str)]) -> HeaderMap {
        let value = |text: &&str| HeaderValue::from_bytes(text.as_bytes()).unwrap();
        fields
            .iter()
            .map(|(name, text)| (name.clone(), value(text)))
            .collect()
    }

    #[test]
    fn conditions_are_evaluated_in_the_order_of_the_standard() {
        use header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
        let cases: [(&[(HeaderName, &str)], Verdict); 20] = [
            (&[], Verdict::Proceed),
            (&[(IF_NONE_MATCH, "\"a,b\"")], Verdict::NotModified),
            (&[(IF_NONE_MATCH, "W/\"a,b\"")], Verdict::NotModified),
            (
                &[(IF_NONE_MATCH, "\"x\" , W/\"y\",\"a,b\"")],
                Verdict::NotModified,
            ),
            (&[(IF_NONE_MATCH, " * ")], Verdict::NotModified),
            (
                &[(IF_NONE_MATCH, "\"x\""), (IF_NONE_MATCH, "\"a,b\"")],
                Verdict::NotModified,
            ),
            (&[(IF_NONE_MATCH, "\"x\"")], Verdict::Proceed),
            (&[(IF_NONE_MATCH, "a,b")], Verdict::Proceed),
            (
                &[(IF_NONE_MATCH, "\"x\""), (IF_MODIFIED_SINCE, AFTER)],
                Verdict::Proceed,
            ),
            (&[(IF_MODIFIED_SINCE, THEN)], Verdict::NotModified),
            (&[(IF_MODIFIED_SINCE, AFTER)], Verdict::NotModified),
            (&[(IF_MODIFIED_SINCE, BEFORE)], Verdict::Proceed),
            (&[(IF_MODIFIED_SINCE, "yesterday")], Verdict::Proceed),
            (&[(IF_MATCH, "\"a,b\"")], Verdict::Proceed),
            (&[(IF_MATCH, "*")], Verdict::Proceed),
            (&[(IF_MATCH, "W/\"a,b\"")], Verdict::Failed),
            (
                &[(IF_MATCH, "\"x\""), (IF_UNMODIFIED_SINCE, AFTER)],
                Verdict::Failed,
            ),
            (
                &[(IF_MATCH, "\"a,b\""), (IF_NONE_MATCH, "\"a,b\"")],
                Verdict::NotModified,
            ),
            (&[(IF_UNMODIFIED_SINCE, THEN)], Verdict::Proceed),
            (&[(IF_UNMODIFIED_SINCE, BEFORE)], Verdict::Failed),
        ];
        for (fields, expected) in cases {
            assert_eq!(state().evaluate(&request(fields)), expected, "{fields:?}");
        }
    }

    #[test]
    fn ranges_are_sent_only_of_the_representation_that_the_client_has() {
        let cases = [
            ("\"a,b\"", true),
            ("W/\"a,b\"", false),
            ("\"x\"", false),
            (THEN, true),
            (BEFORE, false),
            (AFTER, false),
            ("nonsense", false),
        ];
        assert!(state().allow_ranges(&request(&[])));
        for (field, expected) in cases {
            let request = request(&[(header::IF_RANGE, field)]);
            assert_eq!(state().allow_ranges(&request), expected, "{field}");
        }
    }

    proptest! {
        #[test]
        fn every_parsed_tag_is_quoted_whatever_the_list(list in "[W/\"a, *\\\\é]{0,40}") {
            for tag in tags(list.as_bytes()) {
                prop_assert!(tag.ends_with(b"\"") && tag.len() >= 2);
            }
        }
    }
}
