//! Sockets and TLS for all protocols.
//!
//! [`dial`] resolves a name and opens a TCP connection, [`TlsConnector`] secures it, protocols read from and write to a
//! [`Stream`], and [`BufferedStream`] adds buffers to it. [`listen`] opens a [`Listener`].

mod buffered;
mod channel_binding;
mod deadline;
mod dial;
pub(crate) mod dsn;
pub(crate) mod idle_hook;
mod listen;
mod local_executor;
mod peer_listener;
mod peer_protocol;
mod server_tls;
mod stream;
mod tls;

pub(crate) use buffered::BufferedStream;
pub(crate) use deadline::Deadline;
pub(crate) use dial::{DialError, dial};
pub(crate) use listen::{Acceptor, bind_beside, local_address, open_spread, start_listening};
pub use listen::{Address, ListenError, Listener, listen};
pub(crate) use local_executor::LocalExecutor;
pub(crate) use peer_listener::PeerListener;
pub(crate) use peer_protocol::PeerProtocol;
pub use server_tls::{ServerTls, TlsAcceptor};
pub(crate) use stream::{PeerState, Stream};
pub(crate) use tls::TlsConnector;
pub use tls::{ClientTls, Identity, PeerCheck};
