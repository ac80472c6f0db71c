//! Messages between supervisor and worker, with a descriptor now and then.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// The longest message in bytes; more is cut by the kernel.
const LONGEST: usize = 128 * 1024;
/// Room for the header and the one descriptor of a message, aligned as `cmsghdr` wants it.
type Control = [u64; 4];

/// One end of a socket pair that keeps message boundaries.
pub(super) struct Channel(OwnedFd);

pub(super) struct Received {
    pub text: Vec<u8>,
    pub descriptor: Option<OwnedFd>,
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

    /// Sends `text` whole or not at all. Waits for room only where `wait` says so.
    pub fn send(
        &self,
        text: &str,
        descriptor: Option<BorrowedFd<'_>>,
        wait: bool,
    ) -> io::Result<()> {
        let mut part = libc::iovec {
            iov_base: text.as_ptr().cast_mut().cast(),
            iov_len: text.len(),
        };
        let mut control: Control = [0; 4];
        // SAFETY: all-zero is a valid msghdr.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        if let Some(descriptor) = descriptor {
            attach(&mut header, &mut control, descriptor.as_raw_fd());
        }
        let flags = libc::MSG_NOSIGNAL | if wait { 0 } else { libc::MSG_DONTWAIT };
        // SAFETY: the header points at buffers that live until the call returns.
        match unsafe { libc::sendmsg(self.0.as_raw_fd(), &header, flags) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
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
        let mut control: Control = [0; 4];
        // SAFETY: all-zero is a valid msghdr.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of::<Control>() as _;
        let flags = libc::MSG_CMSG_CLOEXEC | if wait { 0 } else { libc::MSG_DONTWAIT };
        // SAFETY: the header points at buffers that live until the call returns.
        let length = unsafe { libc::recvmsg(self.0.as_raw_fd(), &mut header, flags) };
        match usize::try_from(length) {
            Err(_) => Err(io::Error::last_os_error()),
            Ok(0) => Ok(None),
            Ok(length) => {
                text.truncate(length);
                let descriptor = attached(&header);
                Ok(Some(Received { text, descriptor }))
            }
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn attach(header: &mut libc::msghdr, control: &mut Control, descriptor: RawFd) {
    header.msg_control = control.as_mut_ptr().cast();
    // SAFETY: one descriptor needs 24 bytes of the 32 in `control`, which is aligned for `cmsghdr`.
    unsafe {
        header.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
        let message = libc::CMSG_FIRSTHDR(header);
        (*message).cmsg_level = libc::SOL_SOCKET;
        (*message).cmsg_type = libc::SCM_RIGHTS;
        (*message).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
        std::ptr::write_unaligned(libc::CMSG_DATA(message).cast(), descriptor);
    }
}

fn attached(header: &libc::msghdr) -> Option<OwnedFd> {
    // SAFETY: the kernel has filled the control buffer in; CMSG_FIRSTHDR is null when it is empty.
    unsafe {
        let message = libc::CMSG_FIRSTHDR(header);
        if message.is_null()
            || (*message).cmsg_level != libc::SOL_SOCKET
            || (*message).cmsg_type != libc::SCM_RIGHTS
        {
            return None;
        }
        let mut descriptor = MaybeUninit::<RawFd>::uninit();
        let data = libc::CMSG_DATA(message);
        std::ptr::copy_nonoverlapping(data, descriptor.as_mut_ptr().cast(), size_of::<RawFd>());
        Some(OwnedFd::from_raw_fd(descriptor.assume_init()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_message_keeps_its_boundaries_and_its_descriptor() {
        let (one, other) = Channel::pair().unwrap();
        let (mut near, far) = UnixStream::pair().unwrap();
        one.send("first", None, true).unwrap();
        one.send("second", Some(far.as_fd()), true).unwrap();
        drop(far);

        let first = other.receive(true).unwrap().unwrap();
        assert_eq!(first.text, b"first");
        assert!(first.descriptor.is_none());
        let second = other.receive(true).unwrap().unwrap();
        assert_eq!(second.text, b"second");
        let mut passed = UnixStream::from(second.descriptor.unwrap());
        passed.write_all(b"hello").unwrap();
        drop(passed);
        let mut heard = String::new();
        near.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "hello");
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
