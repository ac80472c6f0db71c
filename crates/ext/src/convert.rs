//! Values for PHP, and calls of PHP functions.

use ext_php_rs::boxed::ZBox;
use ext_php_rs::convert::IntoZvalDyn;
use ext_php_rs::exception::{PhpException, PhpResult};
use ext_php_rs::types::{ZendCallable, ZendHashTable, Zval};

/// Calls a PHP function that does not suspend; its exception stays pending and is passed on.
pub fn call(name: &str, arguments: Vec<&dyn IntoZvalDyn>) -> PhpResult<Zval> {
    let callable = ZendCallable::try_from_name(name).map_err(|_| {
        PhpException::from(format!("{name}() not found: is Weft's PHP library loaded?"))
    })?;
    Ok(callable.try_call(arguments)?)
}

pub fn array_zval(array: ZBox<ZendHashTable>) -> Zval {
    let mut zval = Zval::new();
    zval.set_hashtable(array);
    zval
}
