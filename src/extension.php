<?php

declare(strict_types=1);

// What somebody sees who has forgotten the extension.
if (!extension_loaded('weft')) {
    spl_autoload_register(static function (string $class): void {
        if (str_starts_with($class, 'Weft\\Native\\')) {
            throw new Error("{$class} is a class of the PHP extension weft, which is not loaded: php -d extension=/path/to/libweft.so, or a line in php.ini (docs/getting-started.md); bin/weft doctor says more");
        }
    });
}
