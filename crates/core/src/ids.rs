//! Identifiers of messages and traces.

use uuid::Uuid;

/// A UUID of version 7 (RFC 9562 §5.7): ids of one process sort in the order they were made.
pub fn message_id() -> String {
    Uuid::now_v7().hyphenated().to_string()
}

/// The W3C `traceparent` of a new span (Trace Context §3.2): in the trace of `parent`, or in a new one when that is absent
/// or malformed (§4.3).
pub fn traceparent(parent: Option<&str>) -> String {
    let random = Uuid::new_v4().simple().to_string();
    match parent.and_then(continued) {
        // The version digit of the UUID is in these 16 digits, so they are never all zero.
        Some((trace, flags)) => format!("00-{trace}-{}-{flags}", &random[..16]),
        None => format!("00-{}-{}-01", Uuid::new_v4().simple(), &random[..16]),
    }
}

/// Trace id and flags of a valid header. Later versions may append fields, which do not concern us.
fn continued(parent: &str) -> Option<(&str, &str)> {
    let mut fields = parent.splitn(5, '-');
    let version = hex(fields.next()?, 2)?;
    let trace = hex(fields.next()?, 32).filter(|id| id.bytes().any(|digit| digit != b'0'))?;
    hex(fields.next()?, 16).filter(|id| id.bytes().any(|digit| digit != b'0'))?;
    let flags = hex(fields.next()?, 2)?;
    let is_known = version != "ff" && (version != "00" || fields.next().is_none());
    is_known.then_some((trace, flags))
}

fn hex(field: &str, digits: usize) -> Option<&str> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (field.len() == digits && field.bytes().all(is_hex)).then_some(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

    #[test]
    fn message_ids_are_version_7_and_sort_in_the_order_they_were_made() {
        let ids: Vec<String> = (0..1000).map(|_| message_id()).collect();
        assert!(ids.is_sorted());
        assert!(ids.iter().all(|id| id.len() == 36 && &id[14..15] == "7"));
    }

    #[test]
    fn a_span_continues_its_parents_trace_and_flags() {
        let child = traceparent(Some(PARENT));
        assert!(
            child.starts_with("00-0af7651916cd43dd8448eb211c80319c-") && child.ends_with("-00")
        );
        assert_ne!(child, PARENT);
        assert!(continued(&child).is_some());
    }

    #[test]
    fn a_malformed_parent_starts_a_new_trace() {
        let zero_trace = "00-00000000000000000000000000000000-b7ad6b7169203331-01";
        let zero_span = "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01";
        let upper = PARENT.to_uppercase();
        let longer = format!("{PARENT}-more");
        for parent in [
            "",
            "nonsense",
            "ff-",
            zero_trace,
            zero_span,
            &upper,
            &longer,
            &PARENT[..54],
        ] {
            let child = traceparent(Some(parent));
            assert!(
                !child.contains("0af7651916cd43dd8448eb211c80319c"),
                "{parent}"
            );
            assert!(continued(&child).is_some(), "{child}");
        }
    }

    #[test]
    fn fields_that_a_later_version_appends_are_ignored() {
        let later = format!("01{}-more", &PARENT[2..]);
        assert!(traceparent(Some(&later)).contains("0af7651916cd43dd8448eb211c80319c"));
    }
}
