//! The schema of this request: the descriptors of all files that a class in use was generated from.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use ext_php_rs::exception::PhpResult;
use ext_php_rs::types::{ZendStr, Zval};
use ext_php_rs::zend::ClassEntry;

use weft_core::protobuf::Schema;

use super::failure::{schema as refused, unusable};
use crate::array::entries;

/// No borrow of it is held while PHP runs: adding a file loads classes, which may use it again.
#[derive(Default)]
struct Files {
    schema: Rc<Schema>,
    /// From a type's full name to the class it was generated as.
    classes: HashMap<String, String>,
}

thread_local! {
    static FILES: RefCell<Files> = RefCell::default();
}

fn with<T>(visit: impl FnOnce(&mut Files) -> T) -> T {
    FILES.with(|files| visit(&mut files.borrow_mut()))
}

pub fn forget() {
    let _ = FILES.try_with(RefCell::take);
}

/// The schema as it is now; files that are added later are in a later one.
pub fn schema() -> Rc<Schema> {
    with(|files| Rc::clone(&files.schema))
}

/// The class that a type was generated as.
pub fn class_of(type_name: &str) -> Option<String> {
    with(|files| files.classes.get(type_name).cloned())
}

/// Adds a generated file and, before it, what it imports. `file` is the name of its class.
pub fn add_file(file: &str, depth: usize) -> PhpResult<()> {
    if depth > 1000 {
        return Err(refused(format!("{file} imports itself")));
    }
    if ClassEntry::try_find(file).is_none() {
        return Err(refused(format!(
            "the class {file} does not exist: `weft proto:generate` writes it beside the classes of the messages"
        )));
    }
    let name = text(&call(file, "name")?, file, "name")?;
    if schema().contains_file(&name) {
        return Ok(());
    }
    for dependency in strings(&call(file, "dependencies")?) {
        // Imports that only bring options along are often not generated, and nothing here needs them.
        if ClassEntry::try_find(&dependency.1).is_some() {
            add_file(&dependency.1, depth + 1)?;
        }
    }
    let descriptor = call(file, "descriptor")?;
    let types = call(file, "types")?;
    let bytes = descriptor
        .zend_str()
        .map(ZendStr::as_bytes)
        .unwrap_or_default();
    let mut schema = schema();
    Rc::make_mut(&mut schema)
        .add(bytes)
        .map_err(|error| unusable(&error))?;
    with(|files| {
        files.schema = schema;
        files.classes.extend(strings(&types));
    });
    Ok(())
}

pub fn call(class: &str, method: &str) -> PhpResult<Zval> {
    crate::convert::call(&format!("{class}::{method}"), vec![])
}

pub fn text(value: &Zval, class: &str, method: &str) -> PhpResult<String> {
    value
        .string()
        .ok_or_else(|| refused(format!("{class}::{method}() must return a string")))
}

fn strings(array: &Zval) -> Vec<(String, String)> {
    let entries = array.array().map(entries).into_iter().flatten();
    entries
        .filter_map(|(key, value)| {
            let number = || key.long().map(|number| number.to_string());
            Some((key.string().or_else(number)?, value.string()?))
        })
        .collect()
}
