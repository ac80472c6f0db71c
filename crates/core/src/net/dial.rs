use std::io;

use tokio::net::TcpStream;

use crate::blocking;

/// Why a TCP connection could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// The host name has no address.
    #[error("{0}")]
    Name(io::Error),
    /// None of the addresses could be reached; the error of the last one.
    #[error("{0}")]
    Socket(io::Error),
}

/// Connects to the first address of the host that answers, with `TCP_NODELAY`: all protocols coalesce their writes themselves, so that
/// Nagle's algorithm would only delay them.
pub(crate) async fn dial(host: &str, port: u16) -> Result<TcpStream, DialError> {
    let addresses = blocking::addresses(host, port)
        .await
        .map_err(DialError::Name)?;
    let mut last = DialError::Name(io::Error::other("the name has no address"));
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(socket) => {
                let _ = socket.set_nodelay(true);
                return Ok(socket);
            }
            Err(error) => last = DialError::Socket(error),
        }
    }
    Err(last)
}
