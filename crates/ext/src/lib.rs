use ext_php_rs::prelude::*;
#[php_module]
pub fn get_module(module: ModuleBuilder) -> ModuleBuilder {
    module
}
