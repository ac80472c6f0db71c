//! TCP connections to the first address of a host that answers: Happy Eyeballs (RFC 8305).

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, sleep_until};

use super::deadline::Deadline;
use crate::blocking;

/// How long an attempt has before one at the next address begins beside it (RFC 8305 §5, Connection Attempt Delay).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Why a TCP connection could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// The host name has no address.
    #[error("{0}")]
    Name(io::Error),
    /// None of the addresses could be reached, and one at least was refused.
    #[error("{0}")]
    Socket(Failures),
    /// None of the addresses has answered in time.
    #[error("{0}")]
    Timeout(Failures),
}

/// The addresses that were tried, each with its failure.
#[derive(Debug)]
pub(crate) struct Failures {
    /// The host is an address, and the message that this becomes a part of names the host.
    is_address: bool,
    of: Vec<(SocketAddr, io::Error)>,
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (address, error)) in self.of.iter().enumerate() {
            match (index, self.is_address) {
                (0, true) => write!(f, "{error}")?,
                (0, false) => write!(f, "{address}: {error}")?,
                _ => write!(f, "; {address}: {error}")?,
            }
        }
        Ok(())
    }
}

/// Connects to the first address of the host that answers, with `TCP_NODELAY`: all protocols coalesce their writes themselves, so that
/// Nagle's algorithm would only delay them.
///
/// An address that is silent holds up the next one for 250 ms, one that refuses not at all. After `deadline` the error names the addresses
/// that have not answered; finding the addresses of a name is for the caller to limit.
pub(crate) async fn dial(
    host: &str,
    port: u16,
    deadline: Deadline,
) -> Result<TcpStream, DialError> {
    let addresses = blocking::addresses(host, port)
        .await
        .map_err(DialError::Name)?;
    if addresses.is_empty() {
        let error = io::Error::other("the name has no address");
        return Err(DialError::Name(error));
    }
    let mut race = Race::new(addresses, TcpStream::connect);
    let failures = |of| Failures {
        is_address: host.parse::<IpAddr>().is_ok(),
        of,
    };
    let won = match race.until(deadline).await {
        Some(won) => won,
        None => return Err(DialError::Timeout(failures(race.unanswered(deadline)))),
    };
    let socket = won.map_err(|errors| {
        let is_late = |(_, error): &(_, io::Error)| error.kind() == io::ErrorKind::TimedOut;
        match errors.iter().all(is_late) {
            true => DialError::Timeout(failures(errors)),
            false => DialError::Socket(failures(errors)),
        }
    })?;
    let _ = socket.set_nodelay(true);
    Ok(socket)
}

/// The addresses with both versions of IP in turn, beginning with that of the first: where one version leads nowhere, the second attempt is
/// one with the other (RFC 8305 §4). Otherwise the order is that of the resolver.
fn interleaved(addresses: Vec<SocketAddr>) -> VecDeque<SocketAddr> {
    let begins_with = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = addresses
        .into_iter()
        .partition(|address| address.is_ipv6() == begins_with);
    let mut second = second.into_iter();
    let mut ordered = VecDeque::new();
    for address in first {
        ordered.push_back(address);
        ordered.extend(second.next());
    }
    ordered.extend(second);
    ordered
}

/// Connection attempts side by side. The first that connects wins; dropping the race ends the others.
struct Race<C, F> {
    connect: C,
    untried: VecDeque<SocketAddr>,
    running: Vec<(SocketAddr, Pin<Box<F>>)>,
    failed: Vec<(SocketAddr, io::Error)>,
    /// The next attempt need not wait for the delay: it is the first, or one has failed.
    is_due: bool,
}

type Won<T> = Result<T, Vec<(SocketAddr, io::Error)>>;

impl<C, F, T> Race<C, F>
where
    C: Fn(SocketAddr) -> F,
    F: Future<Output = io::Result<T>>,
{
    fn new(addresses: Vec<SocketAddr>, connect: C) -> Self {
        Self {
            connect,
            untried: interleaved(addresses),
            running: Vec::new(),
            failed: Vec::new(),
            is_due: true,
        }
    }

    /// The winner, or why each address has failed; `None` at the deadline.
    async fn until(&mut self, deadline: Deadline) -> Option<Won<T>> {
        let mut end = pin!(sleep_until(deadline.at()));
        let mut next = pin!(sleep(Duration::ZERO));
        poll_fn(|context| {
            loop {
                if let Poll::Ready(won) = self.poll_running(context) {
                    return Poll::Ready(Some(won));
                }
                let Some(address) = self.untried.front().copied() else {
                    break;
                };
                if !self.is_due && next.as_mut().poll(context).is_pending() {
                    break;
                }
                let attempt = (self.connect)(address);
                self.running.push((address, Box::pin(attempt)));
                self.untried.pop_front();
                self.is_due = false;
                next.as_mut().reset(Instant::now() + ATTEMPT_DELAY);
            }
            end.as_mut().poll(context).map(|()| None)
        })
        .await
    }

    /// Ready when an attempt has connected, or no address is left.
    fn poll_running(&mut self, context: &mut Context<'_>) -> Poll<Won<T>> {
        let mut index = 0;
        while let Some((_, attempt)) = self.running.get_mut(index) {
            match attempt.as_mut().poll(context) {
                Poll::Pending => index += 1,
                Poll::Ready(Ok(connected)) => return Poll::Ready(Ok(connected)),
                Poll::Ready(Err(error)) => {
                    let (address, _) = self.running.remove(index);
                    self.failed.push((address, error));
                    self.is_due = true;
                }
            }
        }
        match self.running.is_empty() && self.untried.is_empty() {
            true => Poll::Ready(Err(std::mem::take(&mut self.failed))),
            false => Poll::Pending,
        }
    }

    /// Those that have failed, and those that are silent.
    fn unanswered(&mut self, deadline: Deadline) -> Vec<(SocketAddr, io::Error)> {
        let silent = |(address, _)| (address, deadline.no_answer().into());
        let mut unanswered = std::mem::take(&mut self.failed);
        unanswered.extend(self.running.drain(..).map(silent));
        unanswered
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn addresses(hosts: &[&str]) -> Vec<SocketAddr> {
        let address = |host: &&str| SocketAddr::new(host.parse().unwrap(), 1);
        hosts.iter().map(address).collect()
    }

    /// What a server at an address does, and after how long.
    #[derive(Clone, Copy)]
    enum Server {
        Accepts(u64),
        Refuses(u64),
        Silent,
    }
    use Server::*;

    struct Ended {
        /// The address that has won, or the failures.
        outcome: String,
        /// The address of each attempt with the milliseconds until its begin.
        attempts: Vec<(String, u128)>,
    }

    /// A race between servers whose host is their last group, with ten seconds at most.
    async fn race(servers: &[(&str, Server)]) -> Ended {
        let began = Instant::now();
        let attempts = RefCell::new(Vec::new());
        let hosts: Vec<&str> = servers.iter().map(|(host, _)| *host).collect();
        let connect = |address: SocketAddr| {
            let host = address.ip().to_string();
            attempts
                .borrow_mut()
                .push((host.clone(), began.elapsed().as_millis()));
            let server = servers.iter().find(|(name, _)| *name == host).unwrap().1;
            async move {
                let (after, outcome) = match server {
                    Accepts(after) => (after, Ok(host)),
                    Refuses(after) => (after, Err(io::ErrorKind::ConnectionRefused.into())),
                    Silent => (3_600_000, Err(io::ErrorKind::TimedOut.into())),
                };
                sleep(Duration::from_millis(after)).await;
                outcome
            }
        };
        let mut race = Race::new(addresses(&hosts), connect);
        let failures = |of| {
            let is_address = false;
            Failures { is_address, of }.to_string()
        };
        let deadline = Deadline::after(Duration::from_secs(10));
        let outcome = match race.until(deadline).await {
            Some(Ok(host)) => host,
            Some(Err(errors)) => failures(errors),
            None => format!("late: {}", failures(race.unanswered(deadline))),
        };
        drop(race);
        Ended {
            outcome,
            attempts: attempts.take(),
        }
    }

    fn begun(attempts: &[(&str, u128)]) -> Vec<(String, u128)> {
        let owned = |(host, at): &(&str, u128)| ((*host).to_owned(), *at);
        attempts.iter().map(owned).collect()
    }

    #[test]
    fn the_versions_of_ip_take_turns() {
        for (found, tried) in [
            (
                &["::1", "::2", "::3", "10.0.0.1"][..],
                &["::1", "10.0.0.1", "::2", "::3"][..],
            ),
            (
                &["10.0.0.1", "::1", "10.0.0.2", "::2", "::3"],
                &["10.0.0.1", "::1", "10.0.0.2", "::2", "::3"],
            ),
            (&["10.0.0.2", "10.0.0.1"], &["10.0.0.2", "10.0.0.1"]),
        ] {
            assert_eq!(interleaved(addresses(found)), addresses(tried));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_answers_is_the_only_one_asked() {
        let ended = race(&[("::1", Accepts(200)), ("10.0.0.1", Accepts(0))]).await;
        assert_eq!(ended.outcome, "::1");
        assert_eq!(ended.attempts, begun(&[("::1", 0)]));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_is_silent_holds_up_the_next_one_for_the_delay() {
        let ended = race(&[("::1", Silent), ("::2", Silent), ("10.0.0.1", Accepts(10))]).await;
        assert_eq!(ended.outcome, "10.0.0.1");
        assert_eq!(ended.attempts, begun(&[("::1", 0), ("10.0.0.1", 250)]));
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_others_have_joined_may_still_win() {
        let ended = race(&[("::1", Accepts(300)), ("10.0.0.1", Silent)]).await;
        assert_eq!(ended.outcome, "::1");
        assert_eq!(ended.attempts, begun(&[("::1", 0), ("10.0.0.1", 250)]));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_refuses_holds_up_nothing() {
        let ended = race(&[
            ("::1", Refuses(10)),
            ("10.0.0.1", Silent),
            ("::2", Accepts(5)),
        ])
        .await;
        assert_eq!(ended.outcome, "::2");
        let attempts = begun(&[("::1", 0), ("10.0.0.1", 10), ("::2", 260)]);
        assert_eq!(ended.attempts, attempts);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_names_each_address() {
        let ended = race(&[("::1", Refuses(400)), ("10.0.0.1", Refuses(0))]).await;
        assert_eq!(
            ended.outcome,
            "10.0.0.1:1: connection refused; [::1]:1: connection refused"
        );
        let late = race(&[("::1", Silent), ("10.0.0.1", Refuses(0)), ("::2", Silent)]).await;
        assert_eq!(
            late.outcome,
            "late: 10.0.0.1:1: connection refused; [::1]:1: no answer within 10s; [::2]:1: no answer within 10s"
        );
    }

    #[tokio::test]
    async fn a_host_that_is_an_address_is_not_named_again() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = closed.local_addr().unwrap().port();
        drop(closed);
        let deadline = Deadline::after(Duration::from_secs(60));
        let error = dial("127.0.0.1", port, deadline).await.unwrap_err();
        assert!(
            error.to_string().starts_with("Connection refused"),
            "{error}"
        );
        let error = dial("localhost", port, deadline).await.unwrap_err();
        assert!(
            error
                .to_string()
                .contains(&format!("127.0.0.1:{port}: Connection refused")),
            "{error}"
        );
    }
}
