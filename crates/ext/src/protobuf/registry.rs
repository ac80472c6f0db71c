//! The bindings of message classes, kept until the request ends.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use ext_php_rs::exception::PhpResult;
use ext_php_rs::types::ZendStr;

use weft_core::protobuf::LayoutId;

use super::binding::Binding;
use super::failure::schema as refused;
use super::schema_files::{self, class_of, schema};
use crate::process::Process;
use crate::zend::Class;

/// No borrow of it is held while PHP runs: binding a class loads files, which may use this again.
#[derive(Default)]
struct Registry {
    by_layout: Vec<Option<Rc<Binding>>>,
    by_class: HashMap<Class, Rc<Binding>, BuildHasherDefault<AddressHasher>>,
}

/// Hashes an address. Input from outside cannot choose it, so that it needs no protection against collisions.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_usize((*byte).into()));
    }

    fn write_usize(&mut self, address: usize) {
        // Knuth's multiplicative hash. hashbrown takes the upper and the lower bits.
        let mixed = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Registry {
    /// An earlier binding of the class stays: PHP code that ran while this one was made can have bound it already, and
    /// objects under construction point at it.
    fn keep(&mut self, class: Class, binding: Rc<Binding>) -> Rc<Binding> {
        let bound = Rc::clone(self.by_class.entry(class).or_insert(binding));
        if is_generated(&bound) {
            let index = bound.layout.index();
            if self.by_layout.len() <= index {
                self.by_layout.resize(index + 1, None);
            }
            if let Some(slot) = self.by_layout.get_mut(index) {
                *slot = Some(Rc::clone(&bound));
            }
        }
        bound
    }
}

/// Whether this is the class that the message was generated as, which typed properties expect. Another class can name the same message.
fn is_generated(binding: &Binding) -> bool {
    let schema = schema();
    let layout = schema.layout(binding.layout);
    let class = layout.and_then(|layout| class_of(&layout.name));
    class.is_some_and(|class| {
        let class = class.strip_prefix('\\').unwrap_or(&class);
        class.eq_ignore_ascii_case(&binding.class_name)
    })
}

thread_local! {
    static REGISTRY: RefCell<Registry> = RefCell::default();
}

fn with<T>(visit: impl FnOnce(&mut Registry) -> T) -> T {
    REGISTRY.with(|registry| visit(&mut registry.borrow_mut()))
}

/// Drops all bindings and the schema: classes and enum cases do not outlive the request.
pub fn forget() {
    let _ = REGISTRY.try_with(RefCell::take);
    schema_files::forget();
}

/// The binding of a class, by its name.
pub fn of_name(name: &ZendStr) -> PhpResult<Rc<Binding>> {
    let Some(class) = Class::find(name) else {
        let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
        return Err(refused(format!("the class {name} does not exist")));
    };
    of_class(class)
}

/// The binding of a class.
#[inline]
pub fn of_class(class: Class) -> PhpResult<Rc<Binding>> {
    let known = with(|registry| registry.by_class.get(&class).map(Rc::clone));
    match known {
        Some(binding) => Ok(binding),
        None => bind(class),
    }
}

/// The binding of the class that a layout was generated as.
#[inline]
pub fn of_layout(layout: LayoutId) -> PhpResult<Rc<Binding>> {
    let known = with(|registry| match registry.by_layout.get(layout.index()) {
        Some(Some(binding)) => Some(Rc::clone(binding)),
        _ => None,
    });
    match known {
        Some(binding) => Ok(binding),
        None => load(layout),
    }
}

#[cold]
fn load(layout: LayoutId) -> PhpResult<Rc<Binding>> {
    let schema = schema();
    let name = schema
        .layout(layout)
        .map_or("", |layout| layout.name.as_str());
    match class_of(name) {
        Some(class) => of_name(&ZendStr::new(&class, false)),
        None => Err(refused(format!(
            "no class was generated for the message {name}"
        ))),
    }
}

#[cold]
fn bind(class: Class) -> PhpResult<Rc<Binding>> {
    Process::refuse_after_request()?;
    let binding = Rc::new(Binding::of(class)?);
    Ok(with(|registry| registry.keep(class, binding)))
}
