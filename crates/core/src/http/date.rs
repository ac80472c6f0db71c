use std::cell::RefCell;
use std::time::SystemTime;

use hyper::HeaderMap;
use hyper::header::{self, HeaderValue};

use super::clock::Tick;

/// The Date of responses that hyper gives none (RFC 9110 §6.6.1), as of the last tick.
#[derive(Debug, Default)]
pub(super) struct Date(RefCell<Option<(Tick, HeaderValue)>>);

impl Date {
    /// Not for gRPC: each second would take an entry in the dynamic header table of the connection (RFC 7541 §2.3.2).
    pub(super) fn put(&self, fields: &mut HeaderMap, now: Tick) {
        let kind = fields.get(header::CONTENT_TYPE);
        if kind.is_none_or(|kind| !kind.as_bytes().starts_with(b"application/grpc")) {
            fields.entry(header::DATE).or_insert_with(|| self.at(now));
        }
    }

    /// Appends the date to the head of a response of HTTP/1.1.
    pub(super) fn write(&self, now: Tick, out: &mut Vec<u8>) {
        if let Some((tick, date)) = &*self.0.borrow()
            && *tick == now
        {
            out.extend_from_slice(date.as_bytes());
            return;
        }
        out.extend_from_slice(self.at(now).as_bytes());
    }

    fn at(&self, now: Tick) -> HeaderValue {
        let mut known = self.0.borrow_mut();
        if let Some((tick, date)) = &*known
            && *tick == now
        {
            return date.clone();
        }
        let text = httpdate::fmt_http_date(SystemTime::now());
        let date = HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""));
        *known = Some((now, date.clone()));
        date
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_date_unless_it_has_one_or_is_of_grpc() {
        let date = Date::default();
        let put = |name: header::HeaderName, value: &'static str| {
            let mut fields = HeaderMap::new();
            fields.insert(name, HeaderValue::from_static(value));
            date.put(&mut fields, 1);
            fields
                .get(header::DATE)
                .map(|date| date.to_str().unwrap().to_owned())
        };
        let now = put(header::CONTENT_TYPE, "text/plain").unwrap();
        assert!(httpdate::parse_http_date(&now).is_ok(), "{now}");
        assert_eq!(put(header::CONTENT_TYPE, "application/grpc+proto"), None);
        assert_eq!(put(header::DATE, "mine").as_deref(), Some("mine"));
    }
}
