//! Identifiers of messages and traces.

use uuid::Uuid;

/// A UUID of version 7 (RFC 9562 §5.7): the ids of one process sort in the order of their creation.
pub fn message_id() -> String {
    hyphenated(Uuid::now_v7())
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

/// The `traceparent` for handling a message of a conversation that started without a trace. The conversation's id is the trace id and the
/// second half of the message's id is the span id, so neither needs a header. `None` unless both are UUIDs.
pub fn conversation_traceparent(conversation: &str, message: &str) -> Option<String> {
    let trace = canonical(conversation).filter(|id| !id.is_nil())?;
    let (_, span) = canonical(message)?.as_u64_pair();
    (span != 0).then(|| format!("00-{}-{span:016x}-01", trace.simple()))
}

/// A UUID as 26 digits of Crockford's base 32, as ULIDs are written: ten bytes less, and still sorted. `None` for a text
/// that [`from_base32`] would not restore.
pub fn to_base32(uuid: &str) -> Option<String> {
    let mut rest = canonical(uuid)?.as_u128();
    let mut digits = [b'0'; BASE32_DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit = BASE32[(rest % 32) as usize];
        rest /= 32;
    }
    String::from_utf8(digits.to_vec()).ok()
}

/// The UUID that [`to_base32`] wrote; `None` for any other text.
pub fn from_base32(text: &str) -> Option<String> {
    if text.len() != BASE32_DIGITS || text.as_bytes()[0] > b'7' {
        return None;
    }
    let mut value = 0_u128;
    let mut all = 0;
    for digit in text.bytes() {
        let position = POSITIONS[digit as usize];
        all |= position;
        value = value << 5 | u128::from(position);
    }
    (all < 32).then(|| hyphenated(Uuid::from_u128(value)))
}

/// 128 bits in steps of five; the first digit has three.
const BASE32_DIGITS: usize = 26;
const BASE32: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Where each byte is in [`BASE32`]; of others, a number above all places.
const POSITIONS: [u8; 256] = {
    let mut positions = [u8::MAX; 256];
    let mut place = 0;
    while place < BASE32.len() {
        positions[BASE32[place] as usize] = place as u8;
        place += 1;
    }
    positions
};

/// Formatting it would take several times as many instructions.
fn hyphenated(uuid: Uuid) -> String {
    let mut buffer = Uuid::encode_buffer();
    uuid.hyphenated().encode_lower(&mut buffer).to_owned()
}

/// Only the form that [`message_id`] writes: lower case with hyphens.
fn canonical(id: &str) -> Option<Uuid> {
    let is_canonical = id.len() == 36 && !id.bytes().any(|byte| byte.is_ascii_uppercase());
    is_canonical.then(|| Uuid::try_parse(id).ok()).flatten()
}

/// Trace id and flags of a valid header. Later versions may append fields, which are ignored.
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
    fn base32_brings_every_uuid_back_and_sorts_like_it() {
        let ids: Vec<String> = (0..1000).map(|_| message_id()).collect();
        let short: Vec<String> = ids.iter().map(|id| to_base32(id).unwrap()).collect();
        assert!(short.is_sorted() && short.iter().all(|id| id.len() == 26));
        let back: Vec<String> = short.iter().map(|id| from_base32(id).unwrap()).collect();
        assert_eq!(back, ids);
        for edge in [Uuid::nil(), Uuid::max()] {
            let id = edge.hyphenated().to_string();
            assert_eq!(from_base32(&to_base32(&id).unwrap()).unwrap(), id);
        }
    }

    #[test]
    fn only_ids_that_decode_to_the_same_text_are_shortened() {
        let id = message_id();
        for text in [
            "",
            "order-17",
            &id.to_uppercase(),
            &id.replace('-', ""),
            "ä",
        ] {
            assert_eq!(to_base32(text), None, "{text}");
        }
        let short = to_base32(&id).unwrap();
        let beyond = format!("8{}", &short[1..]);
        let letter_o = format!("{}O", &short[..25]);
        for text in [
            "",
            &short[..25],
            &short.to_lowercase(),
            &beyond,
            &letter_o,
            "äääääääääääää",
        ] {
            assert_eq!(from_base32(text), None, "{text}");
        }
    }

    #[test]
    fn a_conversation_without_a_trace_has_its_own_id_as_one() {
        let (conversation, message) = (message_id(), message_id());
        let own = conversation_traceparent(&conversation, &message).unwrap();
        let (trace, _) = continued(&own).unwrap();
        assert_eq!(trace, conversation.replace('-', ""));
        assert_eq!(own[36..52], message.replace('-', "")[16..]);
        assert_eq!(
            conversation_traceparent(&Uuid::nil().to_string(), &message),
            None
        );
        assert_eq!(conversation_traceparent("order-17", &message), None);
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
