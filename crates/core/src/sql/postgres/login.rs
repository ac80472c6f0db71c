//! Authentication: answers the server's requests that the configuration allows.

use std::{io, mem};

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use postgres_protocol::message::backend as tag;
use postgres_protocol::message::frontend;

use super::auth::{AuthMethod, BindingMode};
use super::cancel_key::CancelKey;
use super::config::Config;
use super::failure::ServerFailure;
use super::replies::Replies;
use super::text::Malformed;
use super::wire::Reader;
use crate::blocking::{self, Purpose};
use crate::net::Stream;

/// The state of an authentication.
pub(super) struct Login<'a> {
    config: &'a Config,
    /// A Unix socket, or TLS with a verified certificate.
    is_proven: bool,
    is_tls: bool,
    /// The channel binding data of the TLS connection, if available.
    binding: Option<Vec<u8>>,
    stage: Stage,
}

enum Stage {
    /// The server has requested nothing.
    Begun,
    /// The password, or its MD5 hash, was sent.
    Answered,
    /// SCRAM has begun: `AuthenticationSASLContinue`, then `AuthenticationSASLFinal` must follow.
    Scram { scram: ScramSha256, bound: bool },
    /// The server has proven that it knows the password.
    Proven { bound: bool },
}

impl<'a> Login<'a> {
    pub(super) fn new(stream: &Stream, config: &'a Config) -> Self {
        let is_tls = matches!(stream, Stream::Tls(_));
        let is_proven = match stream {
            Stream::Unix(_) => true,
            Stream::Tls(_) => config.connect.proves_server(),
            Stream::Tcp(_) => false,
        };
        Self {
            config,
            is_proven,
            is_tls,
            binding: stream.channel_binding(),
            stage: Stage::Begun,
        }
    }

    /// Writes the answer to an authentication request.
    ///
    /// # Errors
    /// The reason why the request is refused.
    pub(super) async fn answer(&mut self, request: Request, out: &mut BytesMut) -> io::Result<()> {
        match request {
            Request::Cleartext => {
                self.begin(AuthMethod::Password)?;
                self.check_exposure()?;
                frontend::password_message(self.password()?, out)?;
                self.stage = Stage::Answered;
                Ok(())
            }
            Request::Md5(salt) => {
                self.begin(AuthMethod::Md5)?;
                let user = self.config.connect.user.as_bytes();
                let hash = md5_hash(user, self.password()?, salt);
                frontend::password_message(hash.as_bytes(), out)?;
                self.stage = Stage::Answered;
                Ok(())
            }
            Request::Sasl(mechanisms) => self.begin_scram(&mechanisms, out),
            Request::SaslContinue(data) => self.continue_scram(data, out).await,
            // No answer is sent: the server continues by itself after its proof.
            Request::SaslFinal(data) => match &mut self.stage {
                Stage::Scram { scram, bound } => {
                    let proven = scram.finish(&data);
                    proven.map_err(|error| {
                        io::Error::other(format!(
                            "the server did not prove that it knows the password: {error} (AuthenticationSASLFinal)"
                        ))
                    })?;
                    self.stage = Stage::Proven { bound: *bound };
                    Ok(())
                }
                _ => Err(io::Error::other("the server skipped the start of SCRAM")),
            },
            Request::Other(code) => Err(io::Error::other(format!(
                "the server requests authentication method {code}, which is not one of trust, password, md5, scram-sha-256"
            ))),
        }
    }

    /// Handles `AuthenticationOk`, which the server may send only after the required steps.
    ///
    /// # Errors
    /// The reason why the server is refused.
    pub(super) fn check_let_in(&self, is_let_in: bool) -> io::Result<()> {
        let refuse = |reason: String| Err(io::Error::other(reason));
        match self.stage {
            _ if !is_let_in => {
                refuse("the server is ready without AuthenticationOk".to_owned())
            }
            Stage::Scram { .. } => refuse(
                "the server ended SCRAM before it proved that it knows the password (no AuthenticationSASLFinal)"
                    .to_owned(),
            ),
            Stage::Begun if !self.config.require_auth.allows(AuthMethod::None) => refuse(format!(
                "require_auth={} is not met: the server requested no authentication",
                self.config.require_auth.text()
            )),
            Stage::Proven { bound: true } => Ok(()),
            _ if self.config.channel_binding == BindingMode::Require => {
                refuse("channel_binding=require is not met: the server did not use SCRAM with channel binding".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Checks that the server may request this method now.
    fn begin(&self, method: AuthMethod) -> io::Result<()> {
        if !matches!(self.stage, Stage::Begun) {
            return Err(io::Error::other(
                "the server requests authentication a second time",
            ));
        }
        if !self.config.require_auth.allows(method) {
            return Err(io::Error::other(format!(
                "require_auth={} is not met: the server requests {}",
                self.config.require_auth.text(),
                method.name()
            )));
        }
        if self.config.channel_binding == BindingMode::Require && method != AuthMethod::ScramSha256
        {
            return Err(io::Error::other(format!(
                "channel_binding=require is not met: the server requests {}",
                method.name()
            )));
        }
        Ok(())
    }

    /// Refuses to send the password to an unverified server.
    fn check_exposure(&self) -> io::Result<()> {
        if self.is_proven || self.config.require_auth.names(AuthMethod::Password) {
            return Ok(());
        }
        let obstacle = match self.is_tls {
            true => "the server's certificate is not verified",
            false => "the connection has no TLS",
        };
        Err(io::Error::other(format!(
            "the server requests the password in clear text, but {obstacle}. Use sslmode=verify-full (with sslrootcert=FILE for \
             an authority of your own), a Unix socket, scram-sha-256 on the server, or, on a trusted network, \
             require_auth=password"
        )))
    }

    fn begin_scram(&mut self, mechanisms: &[String], out: &mut BytesMut) -> io::Result<()> {
        self.begin(AuthMethod::ScramSha256)?;
        let offers = |name: &str| mechanisms.iter().any(|offered| offered == name);
        let binding = self
            .binding
            .take()
            .filter(|_| self.config.channel_binding != BindingMode::Disable);
        let (mechanism, binding, bound) = match binding {
            Some(hash) if offers(SCRAM_SHA_256_PLUS) => {
                let binding = ChannelBinding::tls_server_end_point(hash);
                (SCRAM_SHA_256_PLUS, binding, true)
            }
            // Tells the server that the client supports it: a server that had offered it detects an attacker by this.
            Some(_) => (SCRAM_SHA_256, ChannelBinding::unrequested(), false),
            None => (SCRAM_SHA_256, ChannelBinding::unsupported(), false),
        };
        if self.config.channel_binding == BindingMode::Require && !bound {
            return Err(io::Error::other(match self.is_tls {
                false => "channel_binding=require is not met: the connection has no TLS",
                true if offers(SCRAM_SHA_256_PLUS) => {
                    "channel_binding=require is not met: the signature of the server's certificate names no hash function"
                }
                true => {
                    "channel_binding=require is not met: the server does not offer SCRAM-SHA-256-PLUS"
                }
            }));
        }
        if !offers(mechanism) {
            let offered = mechanisms.join(", ");
            return Err(io::Error::other(format!(
                "the server offers only {offered}"
            )));
        }
        let scram = ScramSha256::new(self.password()?, binding);
        frontend::sasl_initial_response(mechanism, scram.message(), out)?;
        self.stage = Stage::Scram { scram, bound };
        Ok(())
    }

    async fn continue_scram(&mut self, challenge: Vec<u8>, out: &mut BytesMut) -> io::Result<()> {
        let Stage::Scram { mut scram, bound } = mem::replace(&mut self.stage, Stage::Answered)
        else {
            return Err(io::Error::other("the server skipped the start of SCRAM"));
        };
        // The server sets the cost of the key: some milliseconds with PostgreSQL's default of 4,096 iterations, for each connection of a pool.
        let deriving = move || scram.update(&challenge).map(|()| scram);
        let derived = blocking::run(Purpose::Passwords, deriving).await?;
        let scram = derived.map_err(|error| {
            io::Error::other(format!(
                "the server's SCRAM challenge is not accepted: {error} (AuthenticationSASLContinue)"
            ))
        })?;
        frontend::sasl_response(scram.message(), out)?;
        self.stage = Stage::Scram { scram, bound };
        Ok(())
    }

    fn password(&self) -> io::Result<&'a [u8]> {
        let password = self.config.connect.password.as_ref();
        password
            .map(String::as_bytes)
            .ok_or_else(|| io::Error::other("the server requests a password and the DSN has none"))
    }
}

/// An authentication request of the server.
pub(super) enum Request {
    Cleartext,
    Md5([u8; 4]),
    Sasl(Vec<String>),
    SaslContinue(Vec<u8>),
    SaslFinal(Vec<u8>),
    Other(u32),
}

/// The server's messages up to its next request or to `ReadyForQuery`.
#[derive(Default)]
pub(super) struct Answers {
    pub(super) request: Option<Request>,
    /// `AuthenticationOk` has come.
    pub(super) is_let_in: bool,
    pub(super) key: CancelKey,
    pub(super) failure: Option<ServerFailure>,
}

impl Replies for Answers {
    fn message(&mut self, tag: u8, body: &[u8]) -> Result<bool, Malformed> {
        match tag {
            tag::AUTHENTICATION_TAG => {
                self.request = read_request(body)?;
                self.is_let_in |= self.request.is_none();
                Ok(self.request.is_some())
            }
            tag::BACKEND_KEY_DATA_TAG => {
                self.key = CancelKey::read(body)?;
                Ok(false)
            }
            tag::READY_FOR_QUERY_TAG => Ok(true),
            _ => Err(Malformed),
        }
    }

    fn failed(&mut self, failure: ServerFailure) -> bool {
        self.failure = Some(failure);
        true
    }

    fn awaited(&self) -> &'static str {
        match self.is_let_in {
            true => "the end of the start-up",
            false => "authentication",
        }
    }

    fn is_log_in(&self) -> bool {
        true
    }
}

/// `None` for `AuthenticationOk`.
fn read_request(body: &[u8]) -> Result<Option<Request>, Malformed> {
    let mut reader = Reader::new(body);
    let request = match reader.u32()? {
        0 => None,
        3 => Some(Request::Cleartext),
        5 => Some(Request::Md5(reader.take()?)),
        10 => Some(Request::Sasl(read_mechanisms(&mut reader)?)),
        11 => return Ok(Some(Request::SaslContinue(reader.rest().to_vec()))),
        12 => return Ok(Some(Request::SaslFinal(reader.rest().to_vec()))),
        other => return Ok(Some(Request::Other(other))),
    };
    match reader.rest() {
        [] => Ok(request),
        _ => Err(Malformed),
    }
}

fn read_mechanisms(reader: &mut Reader<'_>) -> Result<Vec<String>, Malformed> {
    let mut mechanisms = Vec::new();
    loop {
        match reader.text()? {
            name if name.is_empty() => return Ok(mechanisms),
            name => mechanisms.push(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;
    use crate::reactor::Reactor;

    const MOST_ITERATIONS: u32 = 100_000;

    /// Answers the server's challenge. `polls` gets whether the first poll already had the answer.
    async fn prove(iterations: u32, polls: impl FnOnce(bool)) -> io::Result<Vec<u8>> {
        let config = Config::parse("postgres://app:secret@localhost/").unwrap();
        let mut login = Login {
            config: &config,
            is_proven: false,
            is_tls: false,
            binding: None,
            stage: Stage::Begun,
        };
        let mut out = BytesMut::new();
        let offered = Request::Sasl(vec![SCRAM_SHA_256.to_owned()]);
        login.answer(offered, &mut out).await?;
        let (_, nonce) = std::str::from_utf8(&out)
            .unwrap()
            .rsplit_once("r=")
            .unwrap();
        let challenge = format!("r={nonce}server,s=c2FsdA==,i={iterations}");
        out.clear();
        {
            let challenge = Request::SaslContinue(challenge.into_bytes());
            let mut answering = pin!(login.answer(challenge, &mut out));
            let mut context = Context::from_waker(Waker::noop());
            let first = answering.as_mut().poll(&mut context);
            polls(first.is_ready());
            match first {
                std::task::Poll::Ready(outcome) => outcome?,
                std::task::Poll::Pending => answering.await?,
            }
        }
        Ok(out.to_vec())
    }

    fn on_reactor<T: 'static>(future: impl Future<Output = T> + 'static) -> T {
        let reactor = Reactor::new(|_| None).unwrap();
        let id = reactor.spawn(async { Some(future.await) });
        while !reactor.poll(None).contains(&id) {}
        reactor.take(id).flatten().unwrap()
    }

    #[test]
    fn the_event_loop_goes_on_while_a_key_is_derived_at_the_servers_price() {
        let answer = on_reactor(prove(MOST_ITERATIONS, |ready| assert!(!ready))).unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert!(
            answer.contains("c=biws,r=") && answer.contains(",p="),
            "{answer}"
        );
    }

    #[test]
    fn a_price_above_the_limit_is_refused() {
        let refused = on_reactor(prove(MOST_ITERATIONS + 1, |_| ())).unwrap_err();
        assert!(refused.to_string().contains("iteration count"), "{refused}");
    }
}
