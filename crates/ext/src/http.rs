//! The HTTP server: requests, bodies, responses, files, forms and WebSockets.

mod body_failure;
mod encoder;
mod fields;
mod file;
mod form;
mod request;
mod server;
mod socket;
mod stream;

use ext_php_rs::class::RegisteredClass;
use ext_php_rs::convert::IntoZval;
use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendClassObject, Zval};

pub use encoder::HttpEncoder;
pub use file::{HttpFile, HttpStaticDir};
pub use form::HttpUpload;
pub use request::HttpRequest;
pub use server::HttpServer;
pub use socket::HttpSocket;
pub use stream::HttpStream;

use crate::amqp_table::binary;

/// A new object of a class of ours.
fn object<T: RegisteredClass>(object: T) -> PhpResult<Zval> {
    Ok(ZendClassObject::new(object).into_zval(false)?)
}

fn long(number: i64) -> Zval {
    let mut zval = Zval::new();
    zval.set_long(number);
    zval
}

fn text(text: &str) -> Zval {
    binary(text.as_bytes())
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    module
        .class::<HttpServer>()
        .class::<HttpRequest>()
        .class::<HttpStream>()
        .class::<HttpSocket>()
        .class::<HttpFile>()
        .class::<HttpStaticDir>()
        .class::<HttpUpload>()
        .class::<HttpEncoder>()
}
