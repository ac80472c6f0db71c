//! Messages between supervisor and worker, with descriptors now and then.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use socket2::SockRef;

/// The longest message in bytes; more is cut by the kernel.
const LONGEST: usize = 128 * 1024;
/// Descriptors of one message, at most.
pub(super) const MOST_DESCRIPTORS: usize = 8;
/// Room for the header and the descriptors of a message, aligned as `cmsghdr` wants it.
type Control = [u64; 6];

/// One end of a socket pair that keeps message boundaries.
pub(super) struct Channel(OwnedFd);

pub(super) struct Received {
    pub text: Vec<u8>,
    pub descriptors: Vec<OwnedFd>,
    /// Descriptors were sent that this process had no room for (its limit of open files).
    pub lost_descriptors: bool,
}

impl Channel {
    /// Both ends close on exec.
    pub fn pair() -> io::Result<(Self, Self)> {
        let mut ends: [RawFd; 2] = [-1; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: the kernel writes two descriptors into the array.
        if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so both are open and nobody else owns them.
        Ok(unsafe {
            (
                Self(OwnedFd::from_raw_fd(ends[0])),
                Self(OwnedFd::from_raw_fd(ends[1])),
            )
        })
    }

    pub fn from_descriptor(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// Lets a send that waits for room fail with `WouldBlock` after `timeout`.
    pub fn limit_sends(&self, timeout: Duration) -> io::Result<()> {
        SockRef::from(&self.0).set_write_timeout(Some(timeout))
    }

    /// Sends `text` whole or not at all, with [`MOST_DESCRIPTORS`] at most. Waits for room only where `wait` says so.
    ///
    /// # Errors
    /// `InvalidInput` for a text the other side would receive cut off.
    pub fn send(&self, text: &str, descriptors: &[BorrowedFd<'_>], wait: bool) -> io::Result<()> {
        if text.len() > LONGEST {
            let message = format!("a message of {} bytes is longer than {LONGEST}", text.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let mut part = libc::iovec {
            iov_base: text.as_ptr().cast_mut().cast(),
            iov_len: text.len(),
        };
        let mut control = Control::default();
        // SAFETY: all-zero is a valid msghdr.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        if !descriptors.is_empty() {
            attach(&mut header, &mut control, descriptors)?;
        }
        let flags = libc::MSG_NOSIGNAL | if wait { 0 } else { libc::MSG_DONTWAIT };
        // SAFETY: the header points at buffers that live until the call returns.
        uninterrupted(|| unsafe { libc::sendmsg(self.0.as_raw_fd(), &header, flags) }).map(drop)
    }

    /// The next message, `None` when the other end is closed.
    ///
    /// # Errors
    /// `WouldBlock` when there is none and `wait` is false.
    pub fn receive(&self, wait: bool) -> io::Result<Option<Received>> {
        let mut text = vec![0_u8; LONGEST];
        let mut part = libc::iovec {
            iov_base: text.as_mut_ptr().cast(),
            iov_len: text.len(),
        };
        let mut control = Control::default();
        // SAFETY: all-zero is a valid msghdr.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of::<Control>() as _;
        let flags = libc::MSG_CMSG_CLOEXEC | if wait { 0 } else { libc::MSG_DONTWAIT };
        // SAFETY: the header points at buffers that live until the call returns.
        let length =
            uninterrupted(|| unsafe { libc::recvmsg(self.0.as_raw_fd(), &mut header, flags) })?;
        if length == 0 {
            return Ok(None);
        }
        text.truncate(length);
        Ok(Some(Received {
            text,
            descriptors: attached(&header),
            lost_descriptors: header.msg_flags & libc::MSG_CTRUNC != 0,
        }))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A system call that a signal has ended is made again.
fn uninterrupted(mut call: impl FnMut() -> isize) -> io::Result<usize> {
    loop {
        if let Ok(length) = usize::try_from(call()) {
            return Ok(length);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn attach(
    header: &mut libc::msghdr,
    control: &mut Control,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    if descriptors.len() > MOST_DESCRIPTORS {
        return Err(io::Error::other("too many descriptors for one message"));
    }
    let length = size_of_val(descriptors) as u32;
    header.msg_control = control.as_mut_ptr().cast();
    // SAFETY: so many descriptors need 48 bytes at most, as there are in `control`, which is aligned for `cmsghdr`.
    unsafe {
        header.msg_controllen = libc::CMSG_SPACE(length) as _;
        let message = libc::CMSG_FIRSTHDR(header);
        (*message).cmsg_level = libc::SOL_SOCKET;
        (*message).cmsg_type = libc::SCM_RIGHTS;
        (*message).cmsg_len = libc::CMSG_LEN(length) as _;
        let data: *mut RawFd = libc::CMSG_DATA(message).cast();
        for (at, descriptor) in descriptors.iter().enumerate() {
            data.add(at).write_unaligned(descriptor.as_raw_fd());
        }
    }
    Ok(())
}

fn attached(header: &libc::msghdr) -> Vec<OwnedFd> {
    // SAFETY: the kernel has filled the control buffer in; CMSG_FIRSTHDR is null when it is empty. Each number in it is a
    // descriptor that was opened for us.
    unsafe {
        let message = libc::CMSG_FIRSTHDR(header);
        if message.is_null()
            || (*message).cmsg_level != libc::SOL_SOCKET
            || (*message).cmsg_type != libc::SCM_RIGHTS
        {
            return Vec::new();
        }
        let bytes = (*message).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
        let data: *const RawFd = libc::CMSG_DATA(message).cast();
        (0..bytes / size_of::<RawFd>())
            .map(|at| OwnedFd::from_raw_fd(data.add(at).read_unaligned()))
            .collect()
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
        let descriptors = [other.as_fd(); MOST_DESCRIPTORS + 1];
        one.send("all", &descriptors[1..], true).unwrap();
        let received = other.receive(true).unwrap().unwrap();
        assert_eq!(received.descriptors.len(), MOST_DESCRIPTORS);
        assert!(one.send("more", &descriptors, true).is_err());
    }

    #[test]
    fn a_message_that_would_arrive_cut_off_is_refused() {
        let (one, other) = Channel::pair().unwrap();
        let error = one.send(&"x".repeat(LONGEST + 1), &[], false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        one.send(&"x".repeat(LONGEST), &[], false).unwrap();
        assert_eq!(other.receive(false).unwrap().unwrap().text.len(), LONGEST);
    }

    #[test]
    fn a_send_to_one_who_does_not_read_ends_after_its_timeout() {
        let (one, _other) = Channel::pair().unwrap();
        one.limit_sends(Duration::from_millis(10)).unwrap();
        let error = loop {
            if let Err(error) = one.send(&"x".repeat(LONGEST / 2), &[], true) {
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
