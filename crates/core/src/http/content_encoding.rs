//! Content codings and their negotiation (RFC 9110 §12.5.3).

/// A content coding of responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentEncoding {
    Gzip,
    Brotli,
    Zstd,
}

impl ContentEncoding {
    /// The value of Content-Encoding.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        [Self::Gzip, Self::Brotli, Self::Zstd]
            .into_iter()
            .find(|coding| coding.name() == name)
    }

    fn is_called(self, name: &[u8]) -> bool {
        name.eq_ignore_ascii_case(self.name().as_bytes())
            // §8.4.1.3
            || self == Self::Gzip && name.eq_ignore_ascii_case(b"x-gzip")
    }
}

/// The content codings that a client accepts, by quality from 0 (not acceptable) to 1000.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AcceptEncoding {
    named: Vec<(ContentEncoding, u16)>,
    identity: Option<u16>,
    any: Option<u16>,
}

impl AcceptEncoding {
    /// Parses Accept-Encoding. Malformed elements are ignored.
    pub fn parse(field: &[u8]) -> Self {
        let mut accepted = Self::default();
        for element in field.split(|byte| *byte == b',') {
            let Some((name, quality)) = element_of(element) else {
                continue;
            };
            if name == b"*" {
                accepted.any.get_or_insert(quality);
            } else if name.eq_ignore_ascii_case(b"identity") {
                accepted.identity.get_or_insert(quality);
            } else {
                let codings = [
                    ContentEncoding::Gzip,
                    ContentEncoding::Brotli,
                    ContentEncoding::Zstd,
                ];
                let coding = codings.into_iter().find(|coding| coding.is_called(name));
                accepted
                    .named
                    .extend(coding.map(|coding| (coding, quality)));
            }
        }
        accepted
    }

    pub fn quality(&self, coding: ContentEncoding) -> u16 {
        let named = self.named.iter().find(|(named, _)| *named == coding);
        named.map(|(_, quality)| *quality).or(self.any).unwrap_or(0)
    }

    /// The quality of no coding. It is acceptable unless the client excludes it, but by default less so than any coding that is named.
    pub fn identity(&self) -> u16 {
        self.identity.unwrap_or(match self.any {
            Some(0) => 0,
            _ => 1,
        })
    }

    /// The coding with the highest quality, the first of several; `None` if the client prefers no coding.
    pub fn best_of(
        &self,
        codings: impl IntoIterator<Item = ContentEncoding>,
    ) -> Option<ContentEncoding> {
        let mut best = (0, None);
        for coding in codings {
            let quality = self.quality(coding);
            if quality > best.0 {
                best = (quality, Some(coding));
            }
        }
        best.1.filter(|_| best.0 >= self.identity())
    }
}

/// `name;q=0.5`
fn element_of(element: &[u8]) -> Option<(&[u8], u16)> {
    let mut parts = element.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let name = parts.next().filter(|name| !name.is_empty())?;
    let mut quality = 1000;
    for parameter in parts {
        if let [b'q' | b'Q', b'=', value @ ..] = parameter {
            quality = thousandths(value)?;
        }
    }
    Some((name, quality))
}

/// §12.4.2
fn thousandths(value: &[u8]) -> Option<u16> {
    let (whole, fraction) = match value {
        [whole] => (whole, &b""[..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (whole, fraction),
        _ => return None,
    };
    let mut digits = fraction.iter().chain(b"000").take(3);
    let fraction = digits.try_fold(0, |sum, digit| {
        digit
            .is_ascii_digit()
            .then(|| sum * 10 + u16::from(digit - b'0'))
    })?;
    match (whole, fraction) {
        (b'0', fraction) => Some(fraction),
        (b'1', 0) => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [ContentEncoding; 3] = [
        ContentEncoding::Zstd,
        ContentEncoding::Brotli,
        ContentEncoding::Gzip,
    ];

    fn chosen(field: &str) -> Option<&'static str> {
        AcceptEncoding::parse(field.as_bytes())
            .best_of(ALL)
            .map(ContentEncoding::name)
    }

    #[test]
    fn the_client_gets_what_it_likes_best_and_of_equals_the_first_of_ours() {
        let cases = [
            ("gzip, deflate, br, zstd", Some("zstd")),
            ("gzip, deflate, br", Some("br")),
            ("gzip;q=1.0, br;q=0.5", Some("gzip")),
            ("GZIP ; Q=0.001", Some("gzip")),
            ("x-gzip", Some("gzip")),
            ("*", Some("zstd")),
            ("*;q=0.5, zstd;q=0", Some("br")),
            ("gzip;q=0.5, identity;q=0.8", None),
            ("gzip;q=0", None),
            ("gzip;q=0.000, br;q=0.", None),
            ("identity", None),
            ("deflate", None),
            ("", None),
            ("gzip;q=2", None),
            ("gzip;q=1.001", None),
            ("gzip;q=0.0001", None),
            ("gzip;q=x, br", Some("br")),
            (",;,br", Some("br")),
        ];
        for (field, expected) in cases {
            assert_eq!(chosen(field), expected, "{field}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_chosen_that_was_not_offered(field in "((gzip|br|zstd|identity|\\*)(;q=[01](\\.[0-9]{0,4})?)?[, ]{0,2}){0,6}") {
            let accepted = AcceptEncoding::parse(field.as_bytes());
            if let Some(coding) = accepted.best_of(ALL) {
                prop_assert!(accepted.quality(coding) > 0);
                prop_assert!(field.contains(coding.name()) || field.contains('*'));
                prop_assert!(ALL.iter().all(|other| accepted.quality(*other) <= accepted.quality(coding)));
            }
        }

        #[test]
        fn no_bytes_make_it_panic(field in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = AcceptEncoding::parse(&field).best_of(ALL);
        }
    }
}
