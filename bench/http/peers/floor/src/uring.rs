//! One call for all that is ready: receiving stays armed (multishot) with buffers that the kernel picks, and answers are submitted with the
//! next wait.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::{BufRingEntry, Fd};
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::socket::{ANSWER, close, without_delay};

const ENTRIES: u32 = 1024;
const BUFFERS: u16 = 1024;
const BUFFER_SIZE: usize = 4096;
const GROUP: u16 = 1;
/// What a completion is of, above its descriptor.
const ACCEPT: u64 = 1 << 32;
const RECEIVE: u64 = 2 << 32;
const SEND: u64 = 3 << 32;

pub fn serve(listener: &TcpListener) -> io::Result<()> {
    let mut ring: IoUring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_cqsize(4 * ENTRIES)
        .build(ENTRIES)?;
    let mut buffers = Buffers::register(&ring)?;
    push(&mut ring, &accept(listener.as_raw_fd()))?;
    let mut completions = Vec::new();
    loop {
        ring.submit_and_wait(1)?;
        completions.extend(ring.completion());
        for completion in completions.drain(..) {
            let socket = completion.user_data() as u32 as RawFd;
            match completion.user_data() - socket as u64 {
                ACCEPT => {
                    without_delay(completion.result());
                    push(&mut ring, &receive(completion.result()))?;
                }
                RECEIVE => received(&mut ring, &mut buffers, socket, &completion)?,
                _ => {}
            }
        }
        buffers.publish();
    }
}

fn received(
    ring: &mut IoUring,
    buffers: &mut Buffers,
    socket: RawFd,
    completion: &cqueue::Entry,
) -> io::Result<()> {
    if let Some(buffer) = cqueue::buffer_select(completion.flags()) {
        buffers.give_back(buffer);
    }
    match completion.result() {
        1.. => push(ring, &send(socket))?,
        result if result == -libc::ENOBUFS => {}
        _ => {
            close(socket);
            return Ok(());
        }
    }
    if !cqueue::more(completion.flags()) {
        push(ring, &receive(socket))?;
    }
    Ok(())
}

fn accept(listener: RawFd) -> squeue::Entry {
    opcode::AcceptMulti::new(Fd(listener))
        .build()
        .user_data(ACCEPT)
}

fn receive(socket: RawFd) -> squeue::Entry {
    opcode::RecvMulti::new(Fd(socket), GROUP)
        .build()
        .user_data(RECEIVE | socket as u64)
}

fn send(socket: RawFd) -> squeue::Entry {
    opcode::Send::new(Fd(socket), ANSWER.as_ptr(), ANSWER.len() as u32)
        .flags(libc::MSG_NOSIGNAL)
        .build()
        .flags(squeue::Flags::SKIP_SUCCESS)
        .user_data(SEND | socket as u64)
}

/// Submits what is queued where there is no room.
fn push(ring: &mut IoUring, entry: &squeue::Entry) -> io::Result<()> {
    // SAFETY: descriptors, buffers and answers stay valid: buffers and answers are never freed, a descriptor is closed when nothing is in flight.
    while unsafe { ring.submission().push(entry) }.is_err() {
        ring.submit()?;
    }
    Ok(())
}

/// The ring from which the kernel takes a buffer for what it receives.
struct Buffers {
    entries: *mut BufRingEntry,
    memory: *mut u8,
    tail: u16,
}

impl Buffers {
    fn register(ring: &IoUring) -> io::Result<Self> {
        // Entries must begin at a page; zeroed memory is a ring that is empty.
        let entries =
            pages(size_of::<BufRingEntry>() * usize::from(BUFFERS))?.cast::<BufRingEntry>();
        let memory = pages(BUFFER_SIZE * usize::from(BUFFERS))?;
        // SAFETY: the ring is never freed, and has so many entries.
        unsafe {
            ring.submitter()
                .register_buf_ring_with_flags(entries as u64, BUFFERS, GROUP, 0)?
        };
        let mut buffers = Self {
            entries,
            memory,
            tail: 0,
        };
        (0..BUFFERS).for_each(|buffer| buffers.give_back(buffer));
        buffers.publish();
        Ok(buffers)
    }

    fn give_back(&mut self, buffer: u16) {
        let position = usize::from(self.tail & (BUFFERS - 1));
        // SAFETY: the position is in the ring, and the buffer in the memory. The kernel does not read the entry before it is published.
        unsafe {
            let entry = &mut *self.entries.add(position);
            entry.set_addr(self.memory.add(BUFFER_SIZE * usize::from(buffer)) as u64);
            entry.set_len(BUFFER_SIZE as u32);
            entry.set_bid(buffer);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&self) {
        // SAFETY: the tail is in the first entry; the kernel reads it from its own thread.
        let tail = unsafe { &*BufRingEntry::tail(self.entries).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }
}

fn pages(size: usize) -> io::Result<*mut u8> {
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: new memory at an address of the kernel's choice.
    match unsafe { libc::mmap(std::ptr::null_mut(), size, access, kind, -1, 0) } {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        memory => Ok(memory.cast()),
    }
}
