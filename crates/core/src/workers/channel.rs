//! The messages between supervisor and worker, with file descriptors attached to some.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::cmsg_space;
use rustix::io::retry_on_intr;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};

/// The kernel truncates a longer message.
const MAX_MESSAGE_BYTES: usize = 128 * 1024;
/// Descriptors attached to one message.
pub(super) const MAX_DESCRIPTORS: usize = 8;
const ANCILLARY_BYTES: usize = cmsg_space!(ScmRights(MAX_DESCRIPTORS));

/// One end of a Unix socket pair that preserves message boundaries (`SOCK_SEQPACKET`).
pub(super) struct Channel(OwnedFd);

pub(super) struct Received {
    pub text: Vec<u8>,
    pub descriptors: Vec<OwnedFd>,
    /// The sender attached descriptors that this process has no room for (its limit of open files).
    pub lost_descriptors: bool,
}

impl Channel {
    /// Both ends are closed on exec.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Self(one), Self(other)))
    }

    pub fn from_descriptor(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// Makes a send that waits for room fail with `WouldBlock` after `timeout`.
    pub fn limit_sends(&self, timeout: Duration) -> io::Result<()> {
        Ok(set_socket_timeout(&self.0, Timeout::Send, Some(timeout))?)
    }

    /// Sends `text` whole or not at all, with at most [`MAX_DESCRIPTORS`] attached. Waits for room only if `wait` is set.
    ///
    /// # Errors
    /// `InvalidInput` for a text that the other end would receive truncated.
    pub fn send(&self, text: &str, descriptors: &[BorrowedFd<'_>], wait: bool) -> io::Result<()> {
        if text.len() > MAX_MESSAGE_BYTES {
            let message = format!(
                "a message of {} bytes is longer than {MAX_MESSAGE_BYTES}",
                text.len()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let mut space = [MaybeUninit::uninit(); ANCILLARY_BYTES];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        // The buffer has room for one more than that, for alignment.
        let fits = descriptors.len() <= MAX_DESCRIPTORS
            && (descriptors.is_empty()
                || ancillary.push(SendAncillaryMessage::ScmRights(descriptors)));
        if !fits {
            return Err(io::Error::other("too many descriptors for one message"));
        }
        let mut flags = SendFlags::NOSIGNAL;
        flags.set(SendFlags::DONTWAIT, !wait);
        let parts = [IoSlice::new(text.as_bytes())];
        retry_on_intr(|| sendmsg(&self.0, &parts, &mut ancillary, flags))?;
        Ok(())
    }

    /// The next message; `None` when the other end is closed.
    ///
    /// # Errors
    /// `WouldBlock` when there is none and `wait` is not set.
    pub fn receive(&self, wait: bool) -> io::Result<Option<Received>> {
        let mut text = vec![0_u8; MAX_MESSAGE_BYTES];
        let mut space = [MaybeUninit::uninit(); ANCILLARY_BYTES];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut flags = RecvFlags::CMSG_CLOEXEC;
        flags.set(RecvFlags::DONTWAIT, !wait);
        let received = retry_on_intr(|| {
            let mut parts = [IoSliceMut::new(&mut text)];
            recvmsg(&self.0, &mut parts, &mut ancillary, flags)
        })?;
        if received.bytes == 0 {
            return Ok(None);
        }
        text.truncate(received.bytes);
        let mut descriptors = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(attached) = message {
                descriptors.extend(attached);
            }
        }
        Ok(Some(Received {
            text,
            descriptors,
            lost_descriptors: received.flags.contains(ReturnFlags::CTRUNC),
        }))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_message_keeps_its_boundaries_and_its_descriptors() {
        let (one, other) = Channel::pair().unwrap();
        let (mut near, far) = UnixStream::pair().unwrap();
        one.send("first", &[], true).unwrap();
        one.send("second", &[far.as_fd(), near.as_fd()], true)
            .unwrap();
        drop(far);

        let first = other.receive(true).unwrap().unwrap();
        assert_eq!(first.text, b"first");
        assert!(first.descriptors.is_empty());
        let second = other.receive(true).unwrap().unwrap();
        assert_eq!(second.text, b"second");
        let [passed, _]: [OwnedFd; 2] = second.descriptors.try_into().unwrap();
        let mut passed = UnixStream::from(passed);
        passed.write_all(b"hello").unwrap();
        drop(passed);
        let mut heard = String::new();
        near.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "hello");
    }

    #[test]
    fn as_many_descriptors_arrive_as_a_message_may_have_and_more_are_refused() {
        let (one, other) = Channel::pair().unwrap();
        let descriptors = [other.as_fd(); MAX_DESCRIPTORS + 1];
        one.send("all", &descriptors[1..], true).unwrap();
        let received = other.receive(true).unwrap().unwrap();
        assert_eq!(received.descriptors.len(), MAX_DESCRIPTORS);
        assert!(one.send("more", &descriptors, true).is_err());
    }

    #[test]
    fn a_message_that_would_arrive_cut_off_is_refused() {
        let (one, other) = Channel::pair().unwrap();
        let error = one
            .send(&"x".repeat(MAX_MESSAGE_BYTES + 1), &[], false)
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        one.send(&"x".repeat(MAX_MESSAGE_BYTES), &[], false)
            .unwrap();
        assert_eq!(
            other.receive(false).unwrap().unwrap().text.len(),
            MAX_MESSAGE_BYTES
        );
    }

    #[test]
    fn a_send_to_an_end_that_does_not_read_ends_after_its_timeout() {
        let (one, _other) = Channel::pair().unwrap();
        one.limit_sends(Duration::from_millis(10)).unwrap();
        let error = loop {
            if let Err(error) = one.send(&"x".repeat(MAX_MESSAGE_BYTES / 2), &[], true) {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_closed_end_is_no_message() {
        let (one, other) = Channel::pair().unwrap();
        assert_eq!(
            other.receive(false).err().unwrap().kind(),
            io::ErrorKind::WouldBlock
        );
        drop(one);
        assert!(other.receive(true).unwrap().is_none());
    }
}
