//! Invalid DSNs in error messages, without any part of their password.
//!
//! A password with an unescaped `/` or `?` ends the authority early: a parser takes the rest for a path or for options. So a message shows
//! no more of a DSN than what cannot be a part of its password.

const UNREADABLE: &str = "it has an \"@\" after its address, and nothing more is shown because that may be a part of the password. In user and \
     password, \"/\", \"?\" and \"@\" are written \"%2F\", \"%3F\" and \"%40\"; in other parts \"@\" is \"%40\"";

/// The parts of a DSN as its parser sees them.
struct Parts<'a> {
    /// With `://`; empty if the DSN has none.
    scheme: &'a str,
    authority: &'a str,
    /// The path and the options, with the `/` or `?` before them.
    tail: &'a str,
}

impl<'a> Parts<'a> {
    fn of(dsn: &'a str) -> Self {
        let start = match dsn.split_once("://") {
            Some((scheme, _)) if is_scheme(scheme) => scheme.len() + 3,
            _ => 0,
        };
        let (scheme, rest) = dsn.split_at(start);
        let (authority, tail) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        Self {
            scheme,
            authority,
            tail,
        }
    }

    /// Whether the credentials may reach beyond the authority.
    fn is_ambiguous(&self) -> bool {
        self.tail.contains('@')
    }
}

/// Whether it may be the scheme of a URI (RFC 3986 §3.1).
pub(crate) fn is_scheme(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Refuses an unescaped `@` in the path. An option may have one, but a path with it may be the end of a password with a `/`, and would be shown
/// as the name of the database or of the virtual host.
pub(crate) fn check_path(dsn: &str) -> Result<(), String> {
    let tail = Parts::of(dsn).tail;
    let path = tail.split_once('?').map_or(tail, |(path, _)| path);
    match path.contains('@') {
        true => Err(UNREADABLE.to_owned()),
        false => Ok(()),
    }
}

/// Why a DSN is invalid: `reason`, which may quote the DSN, if nothing in it can be a part of the password.
pub(crate) fn reason(dsn: &str, reason: String) -> String {
    match Parts::of(dsn).is_ambiguous() {
        true => UNREADABLE.to_owned(),
        false => reason,
    }
}

/// The DSN with everything replaced that may be a part of the password. `options` are the names whose values are shown.
pub(crate) fn redact(dsn: &str, options: &[&str]) -> String {
    let parts = Parts::of(dsn);
    let (scheme, authority) = (parts.scheme, parts.authority);
    let user = &authority[..authority.find([':', '@']).unwrap_or(authority.len())];
    if parts.is_ambiguous() {
        return format!("{scheme}{user}:***");
    }
    let (path, query) = match parts.tail.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (parts.tail, None),
    };
    let authority = match authority.rsplit_once('@') {
        Some((login, address)) if login.contains(':') => format!("{user}:***@{address}"),
        None if !is_address(authority) => format!("{user}:***"),
        _ => authority.to_owned(),
    };
    let query = query.map(|query| format!("?{}", redact_options(query, options)));
    format!("{scheme}{authority}{path}{}", query.unwrap_or_default())
}

/// Whether it is `host`, `host:port` or several of them, rather than `user:password` without a host.
fn is_address(authority: &str) -> bool {
    authority.split(',').all(|host| {
        let port = host.rsplit_once(':').map_or("", |(_, port)| port);
        host.starts_with('[') || port.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// A password in an option may have an unescaped `&`: what follows it and is no known option is not shown at all.
fn redact_options(query: &str, options: &[&str]) -> String {
    let mut follows_password = false;
    let shown = query.split('&').map(|pair| {
        let name = pair.split_once('=').map_or(pair, |(name, _)| name);
        if name == "password" {
            follows_password = true;
            return "password=***".to_owned();
        }
        match options.contains(&name) {
            true => pair.to_owned(),
            false if follows_password || !pair.contains('=') => "***".to_owned(),
            false => format!("{name}=***"),
        }
    });
    shown.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_password_is_shown_however_badly_it_is_written() {
        for (dsn, shown) in [
            ("postgres://u:secret@h/x", "postgres://u:***@h/x"),
            ("postgres://u:se?cret@h/x", "postgres://u:***"),
            ("postgres://u:se?cret&z=1@h/x", "postgres://u:***"),
            ("mysql://u:se/cr@et@h:1/x?a=b", "mysql://u:***"),
            (
                "postgres://u@h/x?user=a:b@c&password=secret",
                "postgres://u:***",
            ),
            ("postgres://u@h/x?password=sec@ret", "postgres://u:***"),
            (
                "postgres://u@h/x?password=secret&a=b&c=d",
                "postgres://u@h/x?password=***&a=b&***",
            ),
            (
                "postgres://u@h/x?passwd=secret&a=b&flag",
                "postgres://u@h/x?passwd=***&a=b&***",
            ),
            ("postgres://u:secret/x", "postgres://u:***/x"),
            ("postgres://h:5432/x", "postgres://h:5432/x"),
            ("postgres://[::1]:5432/x", "postgres://[::1]:5432/x"),
            ("amqp://u:a@b@h:1,h:2/x", "amqp://u:***@h:1,h:2/x"),
            ("amqp:u:se://cret@h", "amqp:***"),
            ("amqp:u:secret@h", "amqp:***@h"),
            ("localhost:5672", "localhost:5672"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(redact(dsn, &["a"]), shown);
        }
    }

    #[test]
    fn a_reason_is_shown_only_where_it_cannot_quote_a_password() {
        let shown = |dsn| reason(dsn, "why".to_owned());
        assert_eq!(shown("postgres://u:p@h/x?colour=red"), "why");
        assert!(shown("postgres://u:12?cret@h/x").contains("%3F"));
        assert!(shown("postgres://u:12/cret@h/x").contains("%2F"));
    }
}
