//! Sockets and TLS as every protocol here uses them.
//!
//! [`dial`] finds and opens a TCP connection, [`TlsConnector`] secures it, [`Stream`] is what a protocol reads and writes,
//! [`BufferedStream`] the same with its buffers.

mod buffered;
mod channel_binding;
mod dial;
mod listen;
pub(crate) mod lull;
mod neighbour;
mod rt;
mod server_tls;
mod stream;
mod tls;

pub(crate) use buffered::BufferedStream;
pub(crate) use dial::{DialError, dial};
pub(crate) use listen::{Acceptor, open_spread};
pub use listen::{Address, ListenError, Listener, listen};
pub(crate) use neighbour::Neighbour;
pub(crate) use rt::{Local, TokioTimer};
pub use server_tls::{ServerTls, TlsAcceptor};
pub(crate) use stream::Stream;
pub(crate) use tls::TlsConnector;
pub use tls::{ClientTls, Identity, PeerCheck};
