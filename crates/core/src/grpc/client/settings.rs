//! The limit of a server for header lists. h2 receives it, neither obeys it nor passes it on.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// RFC 9113 §4.1
const FRAME_HEADER: usize = 9;
/// The largest frame before a client has allowed larger ones (RFC 9113 §4.2).
const FRAME_BYTES: usize = 16 << 10;
/// RFC 9113 §6.5
const SETTINGS_FRAME: u8 = 4;
const SETTING_BYTES: usize = 6;
/// `SETTINGS_MAX_HEADER_LIST_SIZE` (RFC 9113 §6.5.2)
const MAX_HEADER_LIST_SIZE: [u8; 2] = [0, 6];

/// What a server has said about the header lists that it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderListLimit {
    /// Its settings have not arrived.
    Unknown,
    Unlimited,
    Bytes(u32),
}

/// The settings of a server.
#[derive(Debug)]
pub(super) struct ServerSettings {
    limit: Cell<HeaderListLimit>,
    arrived: Notify,
}

impl ServerSettings {
    fn new() -> Rc<Self> {
        Rc::new(Self {
            limit: Cell::new(HeaderListLimit::Unknown),
            arrived: Notify::new(),
        })
    }

    pub(super) fn header_list(&self) -> HeaderListLimit {
        self.limit.get()
    }

    /// Completes once the settings have arrived, or the connection has ended without.
    pub(super) async fn arrived(&self) {
        while self.limit.get() == HeaderListLimit::Unknown {
            self.arrived.notified().await;
        }
    }

    fn arrive(&self, limit: HeaderListLimit) {
        if self.limit.get() == HeaderListLimit::Unknown {
            self.limit.set(limit);
            self.arrived.notify_waiters();
        }
    }
}

/// A connection whose first frame is read along with h2. A server begins with its settings (RFC 9113 §3.4); servers of gRPC change that
/// limit no more.
pub(super) struct SettingsReader<S> {
    stream: S,
    /// The bytes of an incomplete first frame; `None` after it.
    first: Option<Vec<u8>>,
    settings: Rc<ServerSettings>,
}

impl<S> SettingsReader<S> {
    pub(super) fn new(stream: S) -> (Self, Rc<ServerSettings>) {
        let settings = ServerSettings::new();
        let reader = Self {
            stream,
            first: Some(Vec::new()),
            settings: Rc::clone(&settings),
        };
        (reader, settings)
    }

    fn received(&mut self, bytes: &[u8]) {
        let Some(first) = &mut self.first else {
            return;
        };
        first.extend_from_slice(bytes);
        let limit = limit_of(first);
        if limit != HeaderListLimit::Unknown {
            self.first = None;
            self.settings.arrive(limit);
        }
    }
}

impl<S> Drop for SettingsReader<S> {
    fn drop(&mut self) {
        self.settings.arrive(HeaderListLimit::Unlimited);
    }
}

/// The limit in a first frame, unknown while that is incomplete.
fn limit_of(first: &[u8]) -> HeaderListLimit {
    let Some((header, payload)) = first.split_first_chunk::<FRAME_HEADER>() else {
        return HeaderListLimit::Unknown;
    };
    let [l0, l1, l2, kind, ..] = *header;
    let length = u32::from_be_bytes([0, l0, l1, l2]) as usize;
    // h2 ends a connection that begins with anything else.
    if kind != SETTINGS_FRAME || length > FRAME_BYTES {
        return HeaderListLimit::Unlimited;
    }
    let Some(settings) = payload.get(..length) else {
        return HeaderListLimit::Unknown;
    };
    let mut limits = settings
        .chunks_exact(SETTING_BYTES)
        .filter_map(|setting| setting.strip_prefix(&MAX_HEADER_LIST_SIZE)?.first_chunk());
    limits
        .next_back()
        .map_or(HeaderListLimit::Unlimited, |bytes| {
            HeaderListLimit::Bytes(u32::from_be_bytes(*bytes))
        })
}

impl<S: AsyncRead + Unpin> AsyncRead for SettingsReader<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let reader = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut reader.stream).poll_read(cx, buf))?;
        reader.received(&buf.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for SettingsReader<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two settings, the second of which is the limit: 16 KiB.
    const LIMITED: &[u8] = b"\0\0\x0c\x04\0\0\0\0\0\0\x03\0\0\x01\0\0\x06\0\0\x40\0";

    #[test]
    fn the_limit_is_known_once_the_first_frame_is_complete() {
        let (mut reader, settings) = SettingsReader::new(());
        for (index, byte) in LIMITED.iter().enumerate() {
            assert_eq!(settings.header_list(), HeaderListLimit::Unknown, "{index}");
            reader.received(&[*byte]);
        }
        assert_eq!(settings.header_list(), HeaderListLimit::Bytes(16 << 10));
        // Later frames are not looked at.
        reader.received(LIMITED);
        assert!(reader.first.is_none());
    }

    #[test]
    fn a_server_that_names_no_limit_has_none() {
        for first in [
            &b"\0\0\0\x04\0\0\0\0\0"[..],
            b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\x01\0",
            b"\0\0\x06\x07\0\0\0\0\0\0\x06\0\0\x01\0",
            b"HTTP/1.1 400 Bad Request",
        ] {
            assert_eq!(limit_of(first), HeaderListLimit::Unlimited, "{first:?}");
        }
    }

    #[test]
    fn the_last_of_several_limits_counts() {
        let twice = [
            &b"\0\0\x0c\x04\0\0\0\0\0"[..],
            b"\0\x06\0\0\x01\0",
            b"\0\x06\0\0\x02\0",
        ];
        assert_eq!(limit_of(&twice.concat()), HeaderListLimit::Bytes(512));
    }

    #[tokio::test]
    async fn a_connection_that_ends_without_settings_holds_up_no_call() {
        let (mut reader, settings) = SettingsReader::new(());
        reader.received(&LIMITED[..5]);
        let ((), ()) = tokio::join!(settings.arrived(), async { drop(reader) });
        assert_eq!(settings.header_list(), HeaderListLimit::Unlimited);
    }
}
