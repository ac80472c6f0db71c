use hyper::Method;

use super::template::{Template, TemplateError};

/// An HTTP rule of a method.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The HTTP method, such as `GET`; `*` is every method.
    pub verb: String,
    /// The path template, such as `/v1/users/{id}`.
    pub template: String,
    /// Index of the method.
    pub method: usize,
    /// The server streams.
    pub server_streams: bool,
}

/// Finds the method for an HTTP request.
#[derive(Debug, Default)]
pub(in super::super) struct Routes {
    routes: Vec<Route>,
}

#[derive(Debug)]
struct Route {
    verb: Option<Method>,
    template: Template,
    index: usize,
    method: usize,
    server_streams: bool,
}

/// The method that an HTTP request calls.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Found {
    /// Index of the rule.
    pub(in super::super) rule: usize,
    pub(in super::super) method: usize,
    pub(in super::super) server_streams: bool,
    /// The rule is for every HTTP method.
    pub(in super::super) takes_any_verb: bool,
    /// Names and values of the path variables.
    pub(in super::super) variables: Vec<(String, String)>,
}

impl Routes {
    pub(in super::super) fn new(rules: Vec<Rule>) -> Result<Self, TemplateError> {
        let route = |(index, rule): (usize, Rule)| {
            let template = Template::parse(&rule.template)?;
            let verb = match rule.verb.as_str() {
                "*" => None,
                verb => Some(
                    Method::from_bytes(verb.as_bytes()).map_err(|_| TemplateError {
                        template: rule.template,
                        wrong: "has a method of HTTP that is none",
                    })?,
                ),
            };
            Ok(Route {
                verb,
                template,
                index,
                method: rule.method,
                server_streams: rule.server_streams,
            })
        };
        let routes: Result<Vec<Route>, _> = rules.into_iter().enumerate().map(route).collect();
        let mut routes = routes?;
        routes.sort_by(|a, b| a.template.precedence(&b.template));
        Ok(Self { routes })
    }

    pub(in super::super) fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    pub(in super::super) fn find(&self, verb: &Method, path: &str) -> Option<Found> {
        let mut routes = self.routes.iter();
        routes.find_map(|route| {
            if route.verb.as_ref().is_some_and(|wanted| wanted != verb) {
                return None;
            }
            let variables = route.template.matches(path)?;
            Some(Found {
                rule: route.index,
                method: route.method,
                server_streams: route.server_streams,
                takes_any_verb: route.verb.is_none(),
                variables: variables
                    .into_iter()
                    .map(|(field, value)| (field.to_owned(), value))
                    .collect(),
            })
        })
    }

    /// The HTTP methods of a path, comma-separated; empty for an unknown path.
    pub(in super::super) fn verbs(&self, path: &str) -> String {
        let mut verbs: Vec<&str> = self
            .routes
            .iter()
            .filter(|route| route.template.matches(path).is_some())
            .map(|route| route.verb.as_ref().map_or("*", Method::as_str))
            .collect();
        verbs.sort_unstable();
        verbs.dedup();
        verbs.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(rules: &[(&str, &str)]) -> Routes {
        let rule = |(method, (verb, template)): (usize, &(&str, &str))| Rule {
            verb: (*verb).to_owned(),
            template: (*template).to_owned(),
            method,
            server_streams: false,
        };
        Routes::new(rules.iter().enumerate().map(rule).collect()).unwrap()
    }

    #[test]
    fn the_method_and_the_path_decide_and_the_more_specific_wins() {
        let routes = routes(&[
            ("GET", "/u/{id}"),
            ("GET", "/u/me"),
            ("POST", "/u/{id}"),
            ("*", "/any"),
        ]);
        let find = |verb, path| routes.find(&verb, path).map(|found| found.method);
        assert_eq!(find(Method::GET, "/u/7"), Some(0));
        assert_eq!(find(Method::GET, "/u/me"), Some(1));
        assert_eq!(find(Method::POST, "/u/me"), Some(2));
        assert_eq!(find(Method::DELETE, "/u/me"), None);
        assert_eq!(find(Method::DELETE, "/any"), Some(3));
        assert_eq!(routes.verbs("/u/me"), "GET, POST");
        assert_eq!(routes.verbs("/x"), "");
    }

    #[test]
    fn a_wrong_rule_is_named() {
        let rule = Rule {
            verb: "GE T".to_owned(),
            template: "/x".to_owned(),
            method: 0,
            server_streams: false,
        };
        let wrong = Routes::new(vec![rule]).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "the path \"/x\" has a method of HTTP that is none"
        );
    }
}
