//! Who calls: the line of the user's code, for reports that name it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use ext_php_rs::ffi::zend_execute_data;
use ext_php_rs::types::ZendStr;
use ext_php_rs::zend::ExecutorGlobals;

use weft_core::pool::Borrower;

/// `ZEND_USER_FUNCTION`.
const USER_FUNCTION: u8 = 2;
/// Frames that are looked at, so that a deep recursion costs no more.
const DEEPEST: usize = 64;

thread_local! {
    /// Names of files by the address of PHP's string, so that a borrow allocates none. Checked by content: an address may
    /// be used again.
    static FILES: RefCell<HashMap<usize, Rc<str>>> = RefCell::default();

    static RECENT: RefCell<Recent> = RefCell::default();
}

/// One user frame.
struct Frame<'a> {
    file: &'a ZendStr,
    line: u32,
    function: Option<&'a ZendStr>,
}

/// The task and the nearest line outside the library. `stack` also keeps the calls that led to it.
pub fn borrower(task: i64, stack: bool) -> Borrower {
    let mut borrower = Borrower {
        task: u64::try_from(task).ok(),
        ..Borrower::default()
    };
    let mut library: Option<&[u8]> = None;
    let mut calls = String::new();
    for frame in Frames::here().take(DEEPEST) {
        let file = frame.file.as_bytes();
        let own = library.get_or_insert_with(|| source_folder(file));
        if file.starts_with(own) && !own.is_empty() {
            continue;
        }
        if borrower.file.is_none() {
            borrower.file = Some(name(frame.file));
            borrower.line = frame.line;
        }
        if !stack {
            break;
        }
        frame.describe(&mut calls);
    }
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
    #[inline(never)]
    pub fn of_caller() -> Option<Self> {
        let mut frames = Frames::here();
        let native = frames.next()?;
        RECENT.with_borrow_mut(|recent| {
            recent.enter(native.file.as_bytes());
            let frame = match recent.is_library(&native) {
                true => frames
                    .take(DEEPEST)
                    .find(|frame| !recent.is_library(frame))?,
                false => native,
            };
            Some(Self {
                file: recent.name(frame.file),
                line: frame.line,
            })
        })
    }
}

/// The last caller's names: a loop that gives many statements allocates and hashes nothing. Compared by content, so that no
/// string of PHP has to be kept alive.
#[derive(Default)]
struct Recent {
    /// The file that called the extension.
    native: Box<[u8]>,
    /// Length of the library's folder in it, 0 where there is none.
    library: usize,
    user: Option<Rc<str>>,
}

impl Recent {
    fn enter(&mut self, native: &[u8]) {
        if *self.native != *native {
            self.native = native.into();
            self.library = source_folder(native).len();
        }
    }

    fn is_library(&self, frame: &Frame<'_>) -> bool {
        self.library > 0
            && frame
                .file
                .as_bytes()
                .starts_with(&self.native[..self.library])
    }

    fn name(&mut self, file: &ZendStr) -> Rc<str> {
        match &self.user {
            Some(user) if user.as_bytes() == file.as_bytes() => Rc::clone(user),
            _ => Rc::clone(self.user.insert(name(file))),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file, self.line)
    }
}

/// Only files of the library call the extension, and each lies in `src/Noun/`.
fn source_folder(file: &[u8]) -> &[u8] {
    let mut slashes = (0..file.len()).rev().filter(|&at| file[at] == b'/');
    slashes.nth(1).map_or(&[], |end| &file[..=end])
}

fn name(file: &ZendStr) -> Rc<str> {
    let address = std::ptr::from_ref(file) as usize;
    FILES.with_borrow_mut(|files| {
        if let Some(known) = files.get(&address)
            && known.as_bytes() == file.as_bytes()
        {
            return Rc::clone(known);
        }
        let name: Rc<str> = String::from_utf8_lossy(file.as_bytes()).into();
        files.insert(address, Rc::clone(&name));
        name
    })
}

impl Frame<'_> {
    fn describe(&self, calls: &mut String) {
        let file = String::from_utf8_lossy(self.file.as_bytes());
        let function = self
            .function
            .map(|name| String::from_utf8_lossy(name.as_bytes()));
        let separator = if calls.is_empty() { "" } else { "\n" };
        calls.push_str(&match function {
            Some(function) => format!("{separator}{file}:{} in {function}()", self.line),
            None => format!("{separator}{file}:{}", self.line),
        });
    }
}

/// The user frames of the running fiber, the innermost first.
struct Frames {
    next: *const zend_execute_data,
}

impl Frames {
    fn here() -> Self {
        Self {
            next: ExecutorGlobals::get().current_execute_data,
        }
    }
}

impl Iterator for Frames {
    type Item = Frame<'static>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            // SAFETY: PHP keeps the chain of frames of the running fiber intact while it is inside this native call; each
            // is null or valid, and so are its function and, in a user function, opline and file name. The item is used
            // before the call returns.
            unsafe {
                let frame = self.next.as_ref()?;
                self.next = frame.prev_execute_data;
                let Some(function) = frame.func.as_ref() else {
                    continue;
                };
                if function.type_ != USER_FUNCTION {
                    continue;
                }
                let op_array = &function.op_array;
                if let (Some(file), Some(opline)) =
                    (op_array.filename.as_ref(), frame.opline.as_ref())
                {
                    return Some(Frame {
                        file,
                        line: opline.lineno,
                        function: op_array.function_name.as_ref(),
                    });
                }
            }
        }
    }
}
