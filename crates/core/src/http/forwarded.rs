//! Clients behind proxies: `X-Forwarded-…` fields and `Forwarded` (RFC 7239), believed where a trusted proxy has written them.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use hyper::HeaderMap;

use super::error_response::is_host;

/// Bits before an IPv4 address that is mapped to IPv6 (RFC 4291 §2.5.5.2).
const MAPPED_PREFIX: u8 = 96;

/// A network of addresses: `10.0.0.0/8`, `::1`. IPv4 addresses as IPv6 maps them (`::ffff:10.0.0.0/104`) are those of IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    network: IpAddr,
    prefix: u8,
}

impl AddressRange {
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => shares(
                network.to_bits().into(),
                address.to_bits().into(),
                self.prefix,
                32,
            ),
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                shares(network.to_bits(), address.to_bits(), self.prefix, 128)
            }
            _ => false,
        }
    }
}

/// Whether the first `prefix` of `width` bits are the same.
fn shares(one: u128, other: u128, prefix: u8, width: u32) -> bool {
    (one ^ other)
        .checked_shr(width - u32::from(prefix))
        .unwrap_or(0)
        == 0
}

impl FromStr for AddressRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || {
            format!(
                "\"{text}\" is neither an IP address nor a network such as 10.0.0.0/8 or fd00::/8"
            )
        };
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let network: IpAddr = address.parse().map_err(|_| malformed())?;
        let width: u8 = if network.is_ipv4() { 32 } else { 128 };
        let prefix: u8 = match prefix {
            Some(prefix) if prefix.bytes().all(|byte| byte.is_ascii_digit()) => {
                prefix.parse().map_err(|_| malformed())?
            }
            Some(_) => return Err(malformed()),
            None => width,
        };
        match network.to_canonical() {
            _ if prefix > width => Err(malformed()),
            mapped @ IpAddr::V4(_) if network.is_ipv6() => {
                match prefix.checked_sub(MAPPED_PREFIX) {
                    Some(prefix) => Ok(Self {
                        network: mapped,
                        prefix,
                    }),
                    None => Err(format!(
                        "\"{text}\" is a network of IPv4 addresses mapped to IPv6, which all share their first {MAPPED_PREFIX} bits: its prefix \
                     must be at least that long"
                    )),
                }
            }
            _ => Ok(Self { network, prefix }),
        }
    }
}

/// The header fields that trusted proxies write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForwardedFields {
    None,
    /// `X-Forwarded-For`, `-Proto`, `-Host`, `-Port`
    #[default]
    XForwarded,
    /// `Forwarded` (RFC 7239)
    Rfc7239,
}

/// The proxies in front of a server.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies {
    pub ranges: Vec<AddressRange>,
    /// Clients of a Unix socket are proxies.
    pub trusts_unix: bool,
    pub fields: ForwardedFields,
    /// Connections of proxies begin with a header of the PROXY protocol.
    pub has_proxy_protocol: bool,
}

/// The client of a request, as trusted proxies describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// `None` if the outermost proxy is on a Unix socket and names none.
    pub address: Option<IpAddr>,
    pub port: Option<u16>,
    pub is_https: bool,
    /// `None` if no proxy names one: then it is that of the request.
    pub host: Option<String>,
}

impl TrustedProxies {
    /// Whether what is at the other end of a connection is a proxy; `None` is a Unix socket.
    pub fn trusts(&self, address: Option<SocketAddr>) -> bool {
        match address {
            None => self.trusts_unix,
            Some(address) => self.trusts_ip(address.ip()),
        }
    }

    fn trusts_ip(&self, address: IpAddr) -> bool {
        self.ranges.iter().any(|range| range.contains(address))
    }

    /// The client of a request that a trusted peer has sent.
    ///
    /// Each proxy appends what it sees, so only the end of a list is certain: it is read backwards, up to the first address that is no
    /// proxy. The client may have written the rest.
    pub(super) fn client(
        &self,
        peer: Option<SocketAddr>,
        is_tls: bool,
        headers: &HeaderMap,
    ) -> Client {
        let mut client = Client {
            address: peer.map(|address| address.ip().to_canonical()),
            port: peer.map(|address| address.port()),
            is_https: is_tls,
            host: None,
        };
        match self.fields {
            ForwardedFields::None => {}
            ForwardedFields::XForwarded => self.read_x_forwarded(&mut client, headers),
            ForwardedFields::Rfc7239 => self.read_forwarded(&mut client, headers),
        }
        client
    }

    fn read_x_forwarded(&self, client: &mut Client, headers: &HeaderMap) {
        let mut hops = 0;
        for node in list(headers, "x-forwarded-for").iter().rev() {
            let Some((address, port)) = node_address(node) else {
                break;
            };
            (client.address, client.port) = (Some(address), port);
            hops += 1;
            if !self.trusts_ip(address) {
                break;
            }
        }
        // The values of the outermost trusted proxy: as many from the end as addresses were. A shorter list was replaced on the way.
        let value = |name: &str| {
            let mut values = list(headers, name);
            let index = values.len().saturating_sub(hops.max(1));
            (index < values.len()).then(|| values.swap_remove(index))
        };
        if let Some(scheme) = value("x-forwarded-proto").as_deref().and_then(is_https) {
            client.is_https = scheme;
        }
        client.host = value("x-forwarded-host").filter(|host| is_plain_host(host));
        let port = value("x-forwarded-port").and_then(|port| port.parse::<u16>().ok());
        if let (Some(host), Some(port)) = (&mut client.host, port) {
            add_port(host, port, client.is_https);
        }
    }

    fn read_forwarded(&self, client: &mut Client, headers: &HeaderMap) {
        for element in elements(headers).iter().rev() {
            let Some(element) = element else {
                break;
            };
            if let Some(scheme) = element.proto.as_deref().and_then(is_https) {
                client.is_https = scheme;
            }
            if let Some(host) = element.host.clone().filter(|host| is_plain_host(host)) {
                client.host = Some(host);
            }
            let Some((address, port)) = element.node.as_deref().and_then(node_address) else {
                break;
            };
            (client.address, client.port) = (Some(address), port);
            if !self.trusts_ip(address) {
                break;
            }
        }
    }
}

/// The values of a field that is a list, those of its lines together.
fn list(headers: &HeaderMap, name: &str) -> Vec<String> {
    let lines = headers.get_all(name).iter();
    lines
        .flat_map(|line| line.as_bytes().split(|&byte| byte == b','))
        .map(|value| String::from_utf8_lossy(value.trim_ascii()).into_owned())
        .collect()
}

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`; a proxy may also write `unknown` or `_hidden`.
fn node_address(node: &str) -> Option<(IpAddr, Option<u16>)> {
    if let Ok(address) = node.parse::<IpAddr>() {
        return Some((address.to_canonical(), None));
    }
    if let Ok(address) = node.parse::<SocketAddr>() {
        return Some((address.ip().to_canonical(), Some(address.port())));
    }
    let address: IpAddr = node.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?;
    Some((address.to_canonical(), None))
}

fn is_https(scheme: &str) -> Option<bool> {
    match scheme.to_ascii_lowercase().as_str() {
        "https" | "wss" => Some(true),
        "http" | "ws" => Some(false),
        _ => None,
    }
}

/// Whether it is a host that can be part of a URL.
fn is_plain_host(host: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%:[]".contains(&byte);
    !host.is_empty()
        && host.len() <= 255 + 6
        && host.bytes().all(is_plain)
        && is_host(host.as_bytes())
}

fn add_port(host: &mut String, port: u16, is_https: bool) {
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.contains(']'));
    if !has_port && port != if is_https { 443 } else { 80 } {
        host.push(':');
        host.push_str(&port.to_string());
    }
}

/// One proxy's part of `Forwarded`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Element {
    node: Option<String>,
    host: Option<String>,
    proto: Option<String>,
}

/// `None` for a line that is malformed: a client may have written it so that a quote swallows what a proxy appends.
fn elements(headers: &HeaderMap) -> Vec<Option<Element>> {
    let mut elements = Vec::new();
    for line in headers.get_all("forwarded") {
        match line.to_str().ok().and_then(parse_elements) {
            Some(parsed) => elements.extend(parsed.into_iter().map(Some)),
            None => elements.push(None),
        }
    }
    elements
}

/// RFC 7239 §4; `None` if it is malformed.
fn parse_elements(line: &str) -> Option<Vec<Element>> {
    let mut elements = vec![Element::default()];
    let mut rest = line.trim_start_matches([' ', '\t']);
    while !rest.is_empty() {
        let (name, value, after) = parse_pair(rest)?;
        let element = elements.last_mut()?;
        match name.to_ascii_lowercase().as_str() {
            "for" => element.node = Some(value),
            "host" => element.host = Some(value),
            "proto" => element.proto = Some(value),
            _ => {}
        }
        rest = after.trim_start_matches([' ', '\t']);
        match rest.as_bytes().first() {
            None => break,
            Some(b';') => {}
            Some(b',') => elements.push(Element::default()),
            Some(_) => return None,
        }
        rest = rest[1..].trim_start_matches([' ', '\t']);
    }
    Some(elements)
}

/// Name, value and what follows them.
fn parse_pair(text: &str) -> Option<(&str, String, &str)> {
    let (name, rest) = text.split_once('=')?;
    if !is_token(name) {
        return None;
    }
    if let Some(quoted) = rest.strip_prefix('"') {
        let mut value = String::new();
        let mut characters = quoted.char_indices();
        while let Some((index, character)) = characters.next() {
            match character {
                '"' => return Some((name, value, &quoted[index + 1..])),
                '\\' => value.push(characters.next()?.1),
                _ => value.push(character),
            }
        }
        return None;
    }
    let end = rest.find([',', ';', ' ', '\t']).unwrap_or(rest.len());
    let (value, rest) = rest.split_at(end);
    // An IPv6 address needs quotes; some proxies write it without.
    let is_value = !value.is_empty()
        && value
            .bytes()
            .all(|byte| is_token_byte(byte) || b":[]".contains(&byte));
    is_value.then(|| (name, value.to_owned(), rest))
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token_byte)
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(ranges: &[&str], fields: ForwardedFields) -> TrustedProxies {
        TrustedProxies {
            ranges: ranges.iter().map(|range| range.parse().unwrap()).collect(),
            trusts_unix: true,
            fields,
            has_proxy_protocol: false,
        }
    }

    /// Address with port, scheme and host of a request that `10.0.0.1` has sent.
    fn seen(
        proxies: &TrustedProxies,
        fields: &[(&'static str, &str)],
    ) -> (String, &'static str, String) {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        let peer = Some("10.0.0.1:9".parse().unwrap());
        let client = proxies.client(peer, false, &headers);
        let port = client
            .port
            .map(|port| format!(" {port}"))
            .unwrap_or_default();
        (
            format!("{}{port}", client.address.unwrap()),
            if client.is_https { "https" } else { "http" },
            client.host.unwrap_or_default(),
        )
    }

    #[test]
    fn a_range_contains_the_addresses_of_its_network_alone() {
        let contains = |range: &str, address: &str| {
            range
                .parse::<AddressRange>()
                .unwrap()
                .contains(address.parse().unwrap())
        };

        assert!(contains("10.0.0.0/8", "10.255.0.1"));
        assert!(contains("10.1.2.3/8", "10.255.0.1"));
        assert!(contains("10.0.0.0/8", "::ffff:10.0.0.1"));
        assert!(!contains("10.0.0.0/8", "11.0.0.1"));
        assert!(contains("192.0.2.1", "192.0.2.1"));
        assert!(!contains("192.0.2.1", "192.0.2.2"));
        assert!(contains("0.0.0.0/0", "203.0.113.9"));
        assert!(!contains("0.0.0.0/0", "2001:db8::1"));
        assert!(contains("2001:db8::/32", "2001:db8:1::1"));
        assert!(!contains("2001:db8::/32", "2001:db9::1"));
        assert!(contains("::/0", "2001:db8::1"));
        assert!(contains("10.0.0.2/31", "10.0.0.3"));
        assert!(contains("::ffff:10.0.0.0/104", "10.1.2.3"));
        assert!(contains("::ffff:10.0.0.0/104", "::ffff:10.1.2.3"));
        assert!(!contains("::ffff:10.0.0.0/104", "11.1.2.3"));
        assert!(contains("::ffff:192.0.2.1", "192.0.2.1"));
        assert!(contains("::ffff:0:0/96", "203.0.113.9"));
        assert!(!contains("::ffff:0:0/96", "2001:db8::1"));
        for malformed in [
            "",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "10.0.0.0/+8",
            "fd00::/129",
            "proxy",
            "10.0.0/8",
            "::ffff:10.0.0.0/8",
            "::ffff:10.0.0.0/129",
        ] {
            assert!(malformed.parse::<AddressRange>().is_err(), "{malformed}");
        }
    }

    #[test]
    fn the_client_is_the_last_address_that_is_no_proxy() {
        let proxies = proxies(&["10.0.0.0/8", "fd00::/8"], ForwardedFields::XForwarded);
        let address = |value: &str| seen(&proxies, &[("x-forwarded-for", value)]).0;

        assert_eq!(address("203.0.113.9"), "203.0.113.9");
        assert_eq!(address("1.1.1.1, 203.0.113.9"), "203.0.113.9");
        assert_eq!(
            address("1.1.1.1, 203.0.113.9, 10.0.0.7, fd00::1"),
            "203.0.113.9"
        );
        assert_eq!(address("10.0.0.9, 10.0.0.8"), "10.0.0.9");
        assert_eq!(address("203.0.113.9:4711"), "203.0.113.9 4711");
        assert_eq!(address("[2001:db8::1]:80"), "2001:db8::1 80");
        assert_eq!(address("[2001:db8::1]"), "2001:db8::1");
        assert_eq!(address("2001:db8::1"), "2001:db8::1");
        assert_eq!(address("::ffff:203.0.113.9"), "203.0.113.9");
        assert_eq!(address("203.0.113.9, unknown"), "10.0.0.1 9");
        assert_eq!(address("1.1.1.1, garbage, 10.0.0.2"), "10.0.0.2");
        assert_eq!(address(""), "10.0.0.1 9");
    }

    #[test]
    fn lines_of_a_field_are_one_list() {
        let proxies = proxies(&["10.0.0.0/8"], ForwardedFields::XForwarded);
        let fields = [
            ("x-forwarded-for", "1.1.1.1"),
            ("x-forwarded-for", "203.0.113.9, 10.0.0.2"),
        ];

        assert_eq!(seen(&proxies, &fields).0, "203.0.113.9");
    }

    #[test]
    fn scheme_and_host_are_those_of_the_outermost_proxy() {
        let proxies = proxies(&["10.0.0.0/8"], ForwardedFields::XForwarded);
        let see = |fields: &[(&'static str, &str)]| {
            let (_, scheme, host) = seen(&proxies, fields);
            format!("{scheme} {host}")
        };

        assert_eq!(
            see(&[
                ("x-forwarded-proto", "https"),
                ("x-forwarded-host", "example.org")
            ]),
            "https example.org"
        );
        assert_eq!(see(&[("x-forwarded-host", "example.org:x")]), "http ");
        assert_eq!(
            see(&[
                ("x-forwarded-for", "203.0.113.9"),
                ("x-forwarded-proto", "https, http")
            ]),
            "http "
        );
        assert_eq!(
            see(&[
                ("x-forwarded-for", "203.0.113.9, 10.0.0.2"),
                ("x-forwarded-proto", "http, https, http")
            ]),
            "https "
        );
        assert_eq!(
            see(&[
                ("x-forwarded-for", "203.0.113.9, 10.0.0.2"),
                ("x-forwarded-proto", "https")
            ]),
            "https "
        );
        assert_eq!(
            see(&[("x-forwarded-proto", "gopher"), ("x-forwarded-host", "a/b")]),
            "http "
        );
        assert_eq!(
            see(&[
                ("x-forwarded-host", "example.org"),
                ("x-forwarded-port", "8443")
            ]),
            "http example.org:8443"
        );
        assert_eq!(
            see(&[
                ("x-forwarded-host", "[::1]"),
                ("x-forwarded-proto", "https"),
                ("x-forwarded-port", "443")
            ]),
            "https [::1]"
        );
        assert_eq!(
            see(&[
                ("x-forwarded-host", "example.org:1"),
                ("x-forwarded-port", "2")
            ]),
            "http example.org:1"
        );
    }

    #[test]
    fn forwarded_is_read_backwards_as_well() {
        let proxies = proxies(&["10.0.0.0/8"], ForwardedFields::Rfc7239);
        let see = |value: &str| {
            let (address, scheme, host) = seen(&proxies, &[("forwarded", value)]);
            format!("{address} {scheme} {host}")
        };

        assert_eq!(
            see("for=203.0.113.9;proto=https;host=example.org"),
            "203.0.113.9 https example.org"
        );
        assert_eq!(see("for=1.1.1.1;proto=http, FOR = x"), "10.0.0.1 9 http ");
        assert_eq!(
            see("for=1.1.1.1;host=evil.example, For=\"[2001:db8::1]:80\"; Proto=https"),
            "2001:db8::1 80 https "
        );
        assert_eq!(
            see("for=203.0.113.9;proto=https;host=example.org, for=10.0.0.2;proto=http"),
            "203.0.113.9 https example.org"
        );
        assert_eq!(
            see("for=1.1.1.1, for=_hidden;proto=https"),
            "10.0.0.1 9 https "
        );
        assert_eq!(see("for=\"1.1.1.1"), "10.0.0.1 9 http ");
        assert_eq!(see("for=\"x, for=203.0.113.9"), "10.0.0.1 9 http ");
        assert_eq!(see("for=\"203.\\0.113.9\""), "203.0.113.9 http ");
    }

    #[test]
    fn a_malformed_line_hides_what_stands_before_it() {
        let proxies = proxies(&["10.0.0.0/8"], ForwardedFields::Rfc7239);
        let fields = [
            ("forwarded", "for=1.1.1.1"),
            ("forwarded", "for=\"x"),
            ("forwarded", "for=10.0.0.3"),
        ];

        assert_eq!(seen(&proxies, &fields).0, "10.0.0.3");
    }

    #[test]
    fn fields_of_the_other_kind_are_ignored() {
        let fields = [("forwarded", "for=1.1.1.1"), ("x-forwarded-for", "2.2.2.2")];

        assert_eq!(
            seen(&proxies(&["10.0.0.1"], ForwardedFields::Rfc7239), &fields).0,
            "1.1.1.1"
        );
        assert_eq!(
            seen(
                &proxies(&["10.0.0.1"], ForwardedFields::XForwarded),
                &fields
            )
            .0,
            "2.2.2.2"
        );
        assert_eq!(
            seen(&proxies(&["10.0.0.1"], ForwardedFields::None), &fields).0,
            "10.0.0.1 9"
        );
    }
}
