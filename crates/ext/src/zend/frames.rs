//! The calls of PHP that are in progress.

use ext_php_rs::ffi::{ext_php_rs_executor_globals, zend_execute_data};
use ext_php_rs::types::ZendStr;

/// `ZEND_USER_FUNCTION`.
const USER_FUNCTION: u8 = 2;

/// A call of a function that is written in PHP.
pub struct Frame<'a> {
    pub file: &'a ZendStr,
    pub line: u32,
    pub function: Option<&'a ZendStr>,
}

/// The address of `zend_executor_globals`, which never changes in a build without thread safety.
pub fn globals_address() -> usize {
    // SAFETY: only the address is taken.
    (unsafe { ext_php_rs_executor_globals() }) as usize
}

/// The user frames of the running fiber, the innermost first.
pub struct Frames {
    next: *const zend_execute_data,
}

impl Frames {
    pub fn here() -> Self {
        Self {
            // SAFETY: PHP keeps the globals of its thread for as long as it runs.
            next: unsafe { (*ext_php_rs_executor_globals()).current_execute_data },
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
