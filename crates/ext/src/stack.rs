//! The PHP call stack, read from another thread while PHP is blocked.
//!
//! No pointer is dereferenced: every value is copied through `/proc/self/mem`, where an address that is not mapped (any
//! more) is an error and not a crash. PHP may move on meanwhile: then a trace ends early, so several are read, and the longest counts. It may name
//! what has just ended.

use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use ext_php_rs::ffi::{
    _zend_class_entry as ClassEntry, _zend_execute_data as ExecuteData,
    _zend_executor_globals as ExecutorGlobals, _zend_op as Op, _zend_op_array as OpArray,
    _zend_string as Str,
};

use crate::zend::globals_address;

/// How often the stack is read. While PHP prepares a call, the frame that was there before has no link to the one around it: one reading in 200 ends
/// there in a loop that only calls functions.
const READINGS: usize = 5;
/// Frames of a trace that are reported.
const MAX_FRAMES: usize = 30;
const MAX_NAME_BYTES: usize = 512;
/// PHP's `ZEND_USER_FUNCTION`: it has opcodes, and so a file and lines.
const USER_FUNCTION: u8 = 2;

/// A function that names the frames of the calling thread, innermost first, from any other thread.
pub fn reader() -> impl Fn() -> Vec<String> + Send + 'static {
    let globals = globals_address();
    move || {
        File::open("/proc/self/mem").map_or_else(|_| Vec::new(), |file| Memory(file).trace(globals))
    }
}

/// This process's memory as a file.
struct Memory(File);

impl Memory {
    fn trace(&self, globals: usize) -> Vec<String> {
        let readings = (0..READINGS).map(|_| self.read_trace(globals));
        readings.max_by_key(Vec::len).unwrap_or_default()
    }

    fn read_trace(&self, globals: usize) -> Vec<String> {
        let mut frames = Vec::new();
        let field = globals + offset_of!(ExecutorGlobals, current_execute_data);
        let mut address = self.address(field).unwrap_or(0);
        while address != 0 && frames.len() < MAX_FRAMES {
            let Some(next) = self.address(address + offset_of!(ExecuteData, prev_execute_data))
            else {
                break;
            };
            frames.extend(self.frame(address));
            address = next;
        }
        frames
    }

    /// `None` for a frame that is not a call, such as that of an include.
    fn frame(&self, frame: usize) -> Option<String> {
        let function = self.address(frame + offset_of!(ExecuteData, func))?;
        if function == 0 {
            return None;
        }
        // The first members of a user function and of an internal one are the same.
        let [kind] = self.bytes(function + offset_of!(OpArray, type_))?;
        let name = self.string(self.address(function + offset_of!(OpArray, function_name))?);
        let scope = self.address(function + offset_of!(OpArray, scope))?;
        let class = match scope {
            0 => None,
            scope => self.string(self.address(scope + offset_of!(ClassEntry, name))?),
        };
        let call = match (class, name) {
            (Some(class), Some(name)) => format!("{class}::{name}()"),
            (_, Some(name)) => format!("{name}()"),
            (_, None) => "main script".to_owned(),
        };
        if kind != USER_FUNCTION {
            return Some(call);
        }
        let file = self.string(self.address(function + offset_of!(OpArray, filename))?)?;
        let line = self.line(frame).unwrap_or(0);
        Some(format!("{call} at {file}:{line}"))
    }

    fn line(&self, frame: usize) -> Option<u32> {
        let op = self.address(frame + offset_of!(ExecuteData, opline))?;
        self.bytes(op + offset_of!(Op, lineno))
            .map(u32::from_ne_bytes)
    }

    fn string(&self, address: usize) -> Option<String> {
        if address == 0 {
            return None;
        }
        let length = self.address(address + offset_of!(Str, len))?;
        let mut bytes = vec![0; length.min(MAX_NAME_BYTES)];
        let at = address + offset_of!(Str, val);
        self.0.read_exact_at(&mut bytes, at as u64).ok()?;
        // An anonymous class has a zero byte in its name, followed by a path.
        let end = bytes.iter().position(|byte| *byte == 0);
        bytes.truncate(end.unwrap_or(bytes.len()));
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A pointer, or a number of its size.
    fn address(&self, at: usize) -> Option<usize> {
        self.bytes(at).map(usize::from_ne_bytes)
    }

    fn bytes<const SIZE: usize>(&self, at: usize) -> Option<[u8; SIZE]> {
        let mut bytes = [0; SIZE];
        self.0.read_exact_at(&mut bytes, at as u64).ok()?;
        Some(bytes)
    }
}
