//! The caller: the line of the user's code, for reports that name it.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use ext_php_rs::types::ZendStr;

use weft_core::pool::Borrower;

use crate::zend::{Frame, Frames};

/// Frames that are looked at, so that a deep recursion costs no more.
const DEEPEST: usize = 64;
/// Files that are remembered, a power of two.
const REMEMBERED: usize = 32;

thread_local! {
    static FILES: RefCell<Files> = RefCell::default();
}

/// The task and the nearest line outside the library. `stack` also keeps the calls that led to it.
pub fn borrower(task: i64, stack: bool) -> Borrower {
    let mut borrower = Borrower {
        task: u64::try_from(task).ok(),
        ..Borrower::default()
    };
    let mut calls = String::new();
    FILES.with_borrow_mut(|files| {
        for (frame, depth) in Frames::here().take(DEEPEST).zip(0..) {
            let name = match depth {
                0 => files.name_of_native_caller(frame.file),
                _ => files.name_of_caller(frame.file),
            };
            let Some(name) = name else {
                continue;
            };
            if borrower.file.is_none() {
                borrower.file = Some(name);
                borrower.line = frame.line;
            }
            if !stack {
                break;
            }
            describe(&frame, &mut calls);
        }
    });
    borrower.stack = stack.then(|| calls.into());
    borrower
}

/// A line of the user's code.
#[derive(Clone)]
pub struct Place {
    file: Rc<str>,
    line: u32,
}

impl Place {
    /// The nearest line outside the library.
    pub fn of_caller() -> Option<Self> {
        FILES.with_borrow_mut(|files| {
            let mut frames = Frames::here().take(DEEPEST);
            let native = frames.next()?;
            if let Some(file) = files.name_of_native_caller(native.file) {
                let line = native.line;
                return Some(Self { file, line });
            }
            frames.find_map(|frame| {
                let file = files.name_of_caller(frame.file)?;
                let line = frame.line;
                Some(Self { file, line })
            })
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file, self.line)
    }
}

/// The files of the frames that were seen lately, so that most calls compare and allocate nothing.
#[derive(Default)]
struct Files {
    /// The directory of the library with the slash behind it; empty until it is known.
    library: Box<[u8]>,
    recent: [Option<File>; REMEMBERED],
}

/// A file, recognised by the address and the hash of PHP's string with its name: the address alone may be used again.
struct File {
    address: usize,
    hash: u64,
    /// `None` for files of the library.
    name: Option<Rc<str>>,
}

impl Files {
    /// The name of a file outside the library.
    fn name_of_caller(&mut self, file: &ZendStr) -> Option<Rc<str>> {
        let address = std::ptr::from_ref(file) as usize;
        let slot = (address >> 4) % REMEMBERED;
        match &self.recent[slot] {
            // PHP computes the hash of a string when it is first needed.
            Some(known) if known.address == address && known.hash == file.h && file.h != 0 => {
                known.name.clone()
            }
            _ => self.remember(slot, file),
        }
    }

    /// The same for the file that calls the extension: it is one of the library's, wherever that is.
    fn name_of_native_caller(&mut self, file: &ZendStr) -> Option<Rc<str>> {
        self.name_of_caller(file)?;
        self.library = source_directory(file.as_bytes()).into();
        self.recent = Default::default();
        self.name_of_caller(file)
    }

    #[cold]
    fn remember(&mut self, slot: usize, file: &ZendStr) -> Option<Rc<str>> {
        let bytes = file.as_bytes();
        let is_library = !self.library.is_empty() && bytes.starts_with(&self.library);
        let name = (!is_library).then(|| Rc::from(String::from_utf8_lossy(bytes)));
        self.recent[slot] = Some(File {
            address: std::ptr::from_ref(file) as usize,
            hash: file.h,
            name: name.clone(),
        });
        name
    }
}

/// Only files of the library call the extension, and each lies in `src/Noun/`.
fn source_directory(file: &[u8]) -> &[u8] {
    let mut slashes = (0..file.len()).rev().filter(|&at| file[at] == b'/');
    slashes.nth(1).map_or(&[], |end| &file[..=end])
}

/// Appends a line that describes the frame.
fn describe(frame: &Frame<'_>, calls: &mut String) {
    let file = String::from_utf8_lossy(frame.file.as_bytes());
    let function = frame
        .function
        .map(|name| String::from_utf8_lossy(name.as_bytes()));
    let separator = if calls.is_empty() { "" } else { "\n" };
    calls.push_str(&match function {
        Some(function) => format!("{separator}{file}:{} in {function}()", frame.line),
        None => format!("{separator}{file}:{}", frame.line),
    });
}
