//! How much of the heap a test takes.
//!
//! Test files include this file with `#[path]`, which replaces the allocator of their program.

#![allow(unsafe_code, reason = "replaces the allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Knows how much of the heap is in use, and how much was.
struct Measuring;

static USED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is the system's allocator, and counting allocates nothing.
unsafe impl GlobalAlloc for Measuring {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(used, Ordering::Relaxed);
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Measuring = Measuring;

/// A measurement of the whole process; of several at a time, only the one that began last is right.
pub struct PeakMemory {
    before: usize,
}

impl PeakMemory {
    pub fn begin() -> Self {
        let before = USED.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        Self { before }
    }

    /// The most bytes in use at the same time since the beginning, beyond those in use then.
    pub fn bytes(&self) -> usize {
        MOST.load(Ordering::Relaxed).saturating_sub(self.before)
    }
}
