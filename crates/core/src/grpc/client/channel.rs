use std::rc::Rc;
use std::time::Duration;

use hyper::client::conn::http2::{Builder, SendRequest};
use tokio::sync::Mutex;

use super::call::Upload;
use super::io::{Io, Local};
use crate::grpc::status::{Code, Status};
use crate::net::{ClientTls, Stream, TlsConnector, dial};

/// What a server may send on one stream before it is read.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;

#[derive(Debug, Clone)]
pub struct ChannelOptions {
    pub host: String,
    pub port: u16,
    /// `None` is plain text.
    pub tls: Option<ClientTls>,
    pub connect_timeout: Duration,
    /// Bytes of one message of the server, before and after decompression.
    pub message_bytes: usize,
}

/// One HTTP/2 connection to a server. Clones share it.
#[derive(Clone)]
pub struct Channel {
    shared: Rc<Shared>,
}

struct Shared {
    options: ChannelOptions,
    tls: Option<TlsConnector>,
    /// Locked while a connection is being made: whoever needs one meanwhile gets the same.
    connection: Mutex<Option<SendRequest<Upload>>>,
}

impl Channel {
    /// Connects when the first call needs it.
    ///
    /// # Errors
    /// Which file of the TLS options is wrong and why.
    pub fn new(options: ChannelOptions) -> Result<Self, String> {
        let tls = options.tls.as_ref().map(|tls| {
            TlsConnector::new(&ClientTls {
                protocols: vec![b"h2".to_vec()],
                ..tls.clone()
            })
        });
        let tls = tls.transpose()?;
        let shared = Shared {
            options,
            tls,
            connection: Mutex::new(None),
        };
        Ok(Self {
            shared: Rc::new(shared),
        })
    }

    pub(super) fn message_bytes(&self) -> usize {
        self.shared.options.message_bytes
    }

    pub(super) fn scheme(&self) -> &'static str {
        match self.shared.tls {
            Some(_) => "https",
            None => "http",
        }
    }

    pub(super) fn authority(&self) -> String {
        let options = &self.shared.options;
        match options.host.contains(':') {
            true => format!("[{}]:{}", options.host, options.port),
            false => format!("{}:{}", options.host, options.port),
        }
    }

    /// The connection, made where there is none that can take a call.
    pub(super) async fn connection(&self) -> Result<SendRequest<Upload>, Status> {
        let mut connection = self.shared.connection.lock().await;
        if let Some(open) = connection.as_mut()
            && !open.is_closed()
            && open.ready().await.is_ok()
        {
            return Ok(open.clone());
        }
        let limit = self.shared.options.connect_timeout;
        let made = tokio::time::timeout(limit, self.connect()).await;
        let made = made.unwrap_or_else(|_| Err(format!("no answer in {limit:?}")));
        let open = made.map_err(|reason| {
            let message = format!("cannot connect to {}: {reason}", self.authority());
            Status::new(Code::UNAVAILABLE, message)
        })?;
        *connection = Some(open.clone());
        Ok(open)
    }

    async fn connect(&self) -> Result<SendRequest<Upload>, String> {
        let options = &self.shared.options;
        let socket = dial(&options.host, options.port)
            .await
            .map_err(|error| error.to_string())?;
        let stream = match &self.shared.tls {
            Some(tls) => tls.handshake(&options.host, socket).await?,
            None => Stream::Tcp(socket),
        };
        let (open, connection) = Builder::new(Local)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(Io(stream))
            .await
            .map_err(|error| error.to_string())?;
        tokio::task::spawn_local(async move {
            // Each call hears of it by itself.
            let _ = connection.await;
        });
        Ok(open)
    }
}
