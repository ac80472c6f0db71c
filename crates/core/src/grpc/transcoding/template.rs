use std::borrow::Cow;
use std::cmp::Ordering;

use percent_encoding::percent_decode_str;

/// A path template of `google.api.http`, such as `/v1/{name=shelves/*}/books/{id}:read`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    parts: Vec<Part>,
    variables: Vec<Variable>,
    verb: Option<String>,
}

/// The order is the one in which templates that match the same path are preferred.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Literal(String),
    /// `*`
    One,
    /// `**`, which is the last
    Rest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable {
    field: String,
    first: usize,
    /// The index behind its last segment.
    end: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the path \"{template}\" {wrong}")]
pub struct TemplateError {
    pub template: String,
    pub wrong: &'static str,
}

impl Template {
    pub(super) fn parse(text: &str) -> Result<Self, TemplateError> {
        Parser::new(text).parse().map_err(|wrong| TemplateError {
            template: text.to_owned(),
            wrong,
        })
    }

    /// The decoded variables of a path; `None` if it does not match.
    pub(super) fn matches<'a>(&'a self, path: &str) -> Option<Vec<(&'a str, String)>> {
        let path = path.strip_prefix('/')?;
        let path = match &self.verb {
            Some(verb) => path.strip_suffix(verb.as_str())?.strip_suffix(':')?,
            None => path,
        };
        let segments: Vec<&str> = path.split('/').collect();
        if !self.fits(&segments) {
            return None;
        }
        let values = self.variables.iter().map(|variable| {
            let end = match self.parts[variable.end - 1] {
                Part::Rest => segments.len(),
                _ => variable.end,
            };
            let is_one = self.parts[variable.first..variable.end] == [Part::One];
            let text = segments[variable.first..end].join("/");
            Some((variable.field.as_str(), decode(&text, is_one)?))
        });
        values.collect()
    }

    fn fits(&self, segments: &[&str]) -> bool {
        let has_rest = self.parts.last() == Some(&Part::Rest);
        let counted = self.parts.len() - usize::from(has_rest);
        let is_long_enough = match has_rest {
            true => segments.len() >= counted,
            false => segments.len() == counted,
        };
        is_long_enough
            && self
                .parts
                .iter()
                .zip(segments)
                .all(|(part, segment)| match part {
                    Part::Literal(literal) => literal == segment,
                    Part::One => !segment.is_empty(),
                    Part::Rest => true,
                })
    }

    /// The order of preference: smaller is more specific.
    pub(super) fn precedence(&self, other: &Self) -> Ordering {
        let verbs = other.verb.is_some().cmp(&self.verb.is_some());
        let kinds =
            |template: &Self| -> Vec<u8> { template.parts.iter().map(Part::kind).collect() };
        verbs.then_with(|| kinds(self).cmp(&kinds(other)))
    }
}

impl Part {
    fn kind(&self) -> u8 {
        match self {
            Self::Literal(_) => 0,
            Self::One => 1,
            Self::Rest => 2,
        }
    }
}

/// A slash that was escaped stays so where the value has slashes of its own.
fn decode(text: &str, is_one: bool) -> Option<String> {
    let text = match is_one {
        true => Cow::Borrowed(text),
        false => Cow::Owned(text.replace("%2F", "%252F").replace("%2f", "%252f")),
    };
    let decoded = percent_decode_str(&text).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

struct Parser<'a> {
    rest: &'a str,
    parts: Vec<Part>,
    variables: Vec<Variable>,
}

type Parsed<T> = Result<T, &'static str>;

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            parts: Vec::new(),
            variables: Vec::new(),
        }
    }

    fn parse(mut self) -> Parsed<Template> {
        if !self.take('/') {
            return Err("does not begin with \"/\"");
        }
        self.segments(false)?;
        let verb = match self.take(':') {
            true => Some(self.literal()?.to_owned()),
            false => None,
        };
        if !self.rest.is_empty() {
            return Err("has something behind its end");
        }
        let is_early = |part: &Part| *part == Part::Rest;
        if self.parts.iter().rev().skip(1).any(is_early) {
            return Err("has \"**\" elsewhere than at its end");
        }
        Ok(Template {
            parts: self.parts,
            variables: self.variables,
            verb,
        })
    }

    fn segments(&mut self, is_inside: bool) -> Parsed<()> {
        loop {
            self.segment(is_inside)?;
            if !self.take('/') {
                return Ok(());
            }
        }
    }

    fn segment(&mut self, is_inside: bool) -> Parsed<()> {
        if self.take('{') {
            return match is_inside {
                true => Err("has a variable inside a variable"),
                false => self.variable(),
            };
        }
        let part = if self.take('*') {
            match self.take('*') {
                true => Part::Rest,
                false => Part::One,
            }
        } else {
            Part::Literal(self.literal()?.to_owned())
        };
        self.parts.push(part);
        Ok(())
    }

    fn variable(&mut self) -> Parsed<()> {
        let field = self.until(|c| c == '=' || c == '}');
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        if !field.split('.').all(is_name) {
            return Err("has a variable that is not the name of a field");
        }
        let first = self.parts.len();
        match self.take('=') {
            true => self.segments(true)?,
            false => self.parts.push(Part::One),
        }
        if !self.take('}') {
            return Err("has a variable without an end");
        }
        self.variables.push(Variable {
            field: field.to_owned(),
            first,
            end: self.parts.len(),
        });
        Ok(())
    }

    fn literal(&mut self) -> Parsed<&'a str> {
        let literal = self.until(|c| matches!(c, '/' | ':' | '{' | '}' | '*' | '=' | '?' | '#'));
        match literal.is_empty() {
            true => Err("has an empty segment"),
            false => Ok(literal),
        }
    }

    fn until(&mut self, is_end: impl Fn(char) -> bool) -> &'a str {
        let (taken, rest) = self
            .rest
            .split_at(self.rest.find(is_end).unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn take(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::Rounds;

    fn values(template: &str, path: &str) -> Option<Vec<(String, String)>> {
        let template = Template::parse(template).unwrap();
        let found = template.matches(path)?;
        Some(
            found
                .into_iter()
                .map(|(field, value)| (field.to_owned(), value))
                .collect(),
        )
    }

    fn value(template: &str, path: &str) -> Option<String> {
        values(template, path).map(|values| values[0].1.clone())
    }

    #[test]
    fn a_variable_is_one_segment_unless_it_says_otherwise() {
        assert_eq!(value("/v1/users/{id}", "/v1/users/7").as_deref(), Some("7"));
        assert_eq!(value("/v1/users/{id}", "/v1/users/"), None);
        assert_eq!(value("/v1/users/{id}", "/v1/users/7/x"), None);
        assert_eq!(
            value("/v1/{name=shelves/*}", "/v1/shelves/3").as_deref(),
            Some("shelves/3")
        );
        assert_eq!(value("/v1/{name=shelves/*}", "/v1/books/3"), None);
        assert_eq!(
            value("/v1/{name=files/**}", "/v1/files/a/b").as_deref(),
            Some("files/a/b")
        );
        assert_eq!(
            value("/v1/{name=files/**}", "/v1/files").as_deref(),
            Some("files")
        );
        assert_eq!(value("/{a.b}/x", "/1/x").as_deref(), Some("1"));
    }

    #[test]
    fn escapes_are_decoded_except_slashes_in_values_of_several_segments() {
        assert_eq!(value("/u/{id}", "/u/a%20b%2Fc").as_deref(), Some("a b/c"));
        assert_eq!(
            value("/u/{id=x/*}", "/u/x/a%20b%2Fc").as_deref(),
            Some("x/a b%2Fc")
        );
        assert_eq!(value("/u/{id}", "/u/%FF"), None);
    }

    #[test]
    fn a_verb_is_behind_the_last_segment() {
        assert_eq!(
            value("/v1/{id}:cancel", "/v1/7:cancel").as_deref(),
            Some("7")
        );
        assert_eq!(value("/v1/{id}:cancel", "/v1/7"), None);
        assert_eq!(value("/v1/{id}", "/v1/a:b").as_deref(), Some("a:b"));
        assert_eq!(values("/v1/things:count", "/v1/things:count"), Some(vec![]));
    }

    #[test]
    fn several_variables_keep_their_order() {
        let found = values("/v1/{a=x/*}/y/{b}", "/v1/x/1/y/2").unwrap();
        assert_eq!(
            found,
            [("a".into(), "x/1".into()), ("b".into(), "2".into())]
        );
    }

    #[test]
    fn malformed_templates_are_refused_with_the_reason() {
        let wrong = |template: &str| Template::parse(template).unwrap_err().to_string();
        assert_eq!(wrong("v1"), "the path \"v1\" does not begin with \"/\"");
        for template in [
            "/",
            "//x",
            "/a//b",
            "/{a",
            "/{a=}",
            "/{}",
            "/{a-b}",
            "/{a={b}}",
            "/**/x",
            "/{a=**}/x",
            "/a}",
            "/a:",
            "/a?b",
        ] {
            assert!(Template::parse(template).is_err(), "{template}");
        }
    }

    #[test]
    fn no_template_and_no_path_make_it_panic_and_what_is_found_is_a_part_of_the_path() {
        let pieces = [
            "/", "a", "b", "{", "}", "{x}", "{x=a/*}", "{y=**}", "=", "*", "**", ":", ":b", "%2F",
            "%", "é",
        ];
        let rounds = Rounds::new(40_000);
        let is_usual = rounds.is_usual();
        let mut found = 0;
        for mut random in rounds {
            let mut text = |count| -> String {
                let count = random.below(count);
                (0..count)
                    .map(|_| pieces[random.below(pieces.len() as u64) as usize])
                    .collect()
            };
            let (template, path) = (format!("/{}", text(5)), format!("/{}", text(5)));
            let Ok(template) = Template::parse(&template) else {
                continue;
            };
            for (_, value) in template.matches(&path).unwrap_or_default() {
                found += 1;
                let decoded = percent_decode_str(&path).decode_utf8_lossy();
                assert!(
                    decoded.contains(&value) || path.contains(&value),
                    "{value} of {path}"
                );
            }
        }
        assert!(!is_usual || found > 100, "only {found} values were found");
    }

    #[test]
    fn the_more_specific_comes_first() {
        let parse = |text| Template::parse(text).unwrap();
        assert_eq!(parse("/a/me").precedence(&parse("/a/{id}")), Ordering::Less);
        assert_eq!(
            parse("/a/{id}").precedence(&parse("/a/{id=**}")),
            Ordering::Less
        );
        assert_eq!(
            parse("/a/{id}:x").precedence(&parse("/a/{id}")),
            Ordering::Less
        );
        assert_eq!(
            parse("/a/{x}").precedence(&parse("/a/{y}")),
            Ordering::Equal
        );
    }
}
