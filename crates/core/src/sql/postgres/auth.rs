//! Requirements on the server's authentication method, with libpq's names and meaning.

/// Authentication methods by their names in `require_auth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMethod {
    /// The password itself.
    Password,
    Md5,
    ScramSha256,
    Gss,
    Sspi,
    OAuth,
    /// No authentication (trust).
    None,
}

const METHODS: [(&str, AuthMethod); 7] = [
    ("password", AuthMethod::Password),
    ("md5", AuthMethod::Md5),
    ("scram-sha-256", AuthMethod::ScramSha256),
    ("gss", AuthMethod::Gss),
    ("sspi", AuthMethod::Sspi),
    ("oauth", AuthMethod::OAuth),
    ("none", AuthMethod::None),
];

impl AuthMethod {
    pub fn name(self) -> &'static str {
        let named = METHODS.iter().find(|(_, method)| *method == self);
        named.map_or("", |(name, _)| name)
    }
}

/// `require_auth`: the methods that the server may request. The default is any, except that the password itself is sent
/// only to a verified server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequireAuth {
    methods: Vec<AuthMethod>,
    /// The methods are refused instead of required.
    excludes: bool,
    text: String,
}

impl RequireAuth {
    /// Parses names separated by commas, all or none with a leading `!`. Empty is the default.
    ///
    /// # Errors
    /// A message with the option and its value.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut methods = Vec::new();
        let entries: Vec<&str> = text.split(',').map(str::trim).collect();
        let excludes = text.trim_start().starts_with('!');
        for entry in entries.into_iter().filter(|_| !text.is_empty()) {
            let name = entry.strip_prefix('!').unwrap_or(entry);
            if entry.starts_with('!') != excludes {
                return Err(format!(
                    "require_auth \"{text}\" mixes methods with and without \"!\""
                ));
            }
            let known = METHODS.iter().find(|(known, _)| *known == name);
            let Some((_, method)) = known else {
                return Err(format!(
                    "require_auth \"{text}\": \"{name}\" must be one of password, md5, scram-sha-256, gss, sspi, oauth, none"
                ));
            };
            if methods.contains(method) {
                return Err(format!("require_auth \"{text}\" names \"{name}\" twice"));
            }
            methods.push(*method);
        }
        Ok(Self {
            methods,
            excludes,
            text: text.to_owned(),
        })
    }

    pub(super) fn allows(&self, method: AuthMethod) -> bool {
        self.methods.is_empty() || self.methods.contains(&method) != self.excludes
    }

    /// Whether the option names the method as allowed.
    pub(super) fn names(&self, method: AuthMethod) -> bool {
        !self.excludes && self.methods.contains(&method)
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// `channel_binding`: whether SCRAM is bound to the TLS connection (`SCRAM-SHA-256-PLUS`, RFC 5929 `tls-server-end-point`), so
/// that an attacker cannot relay it between two connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BindingMode {
    Disable,
    /// If both sides support it.
    #[default]
    Prefer,
    /// Connections without it are refused.
    Require,
}

impl BindingMode {
    /// # Errors
    /// A message with the option and its value.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "disable" => Ok(Self::Disable),
            "prefer" => Ok(Self::Prefer),
            "require" => Ok(Self::Require),
            _ => Err(format!(
                "channel_binding \"{text}\" must be one of disable, prefer, require"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_named_or_excluded() {
        let any = RequireAuth::parse("").unwrap();
        assert!(METHODS.iter().all(|(_, method)| any.allows(*method)));
        let named = RequireAuth::parse("scram-sha-256, none").unwrap();
        assert!(named.allows(AuthMethod::ScramSha256) && named.allows(AuthMethod::None));
        assert!(!named.allows(AuthMethod::Password) && !named.names(AuthMethod::Password));
        let excluded = RequireAuth::parse("!password,!none").unwrap();
        assert!(excluded.allows(AuthMethod::Md5) && !excluded.allows(AuthMethod::None));
        assert!(!excluded.names(AuthMethod::Md5));
    }

    #[test]
    fn a_bad_list_is_refused_with_its_value() {
        for (text, cause) in [
            ("scram", "\"scram\" must be one of password, md5"),
            ("md5,!password", "mixes methods"),
            ("!md5,password", "mixes methods"),
            ("md5,md5", "names \"md5\" twice"),
            ("md5,", "\"\" must be one of"),
        ] {
            let error = RequireAuth::parse(text).unwrap_err();
            assert!(error.contains(cause) && error.contains(text), "{error}");
        }
        assert!(BindingMode::parse("on").unwrap_err().contains("\"on\""));
    }
}
