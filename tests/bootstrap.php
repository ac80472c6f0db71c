<?php

declare(strict_types=1);

if (!extension_loaded('weft')) {
    fwrite(STDERR, <<<'TEXT'
        The extension weft is not loaded. `make test` builds it and runs everything; to run phpunit alone:
        php -d extension=$PWD/target/debug/libweft.so $(command -v phpunit)

        TEXT);
    exit(1);
}

require __DIR__ . '/../autoload.php';

/*
 * The servers' addresses. Variables that are already set win, so a run can be pointed at other servers; without a file and
 * without variables the tests that need a server say so themselves.
 */
(static function (string $file): void {
    if (!is_file($file)) {
        return;
    }
    preg_match_all("/^export (\\w+)='(.*)'$/m", (string) file_get_contents($file), $lines, PREG_SET_ORDER);
    foreach ($lines as [, $name, $value]) {
        if (getenv($name) === false) {
            putenv("$name=" . str_replace("'\\''", "'", $value));
        }
    }
})((getenv('WEFT_VAR') ?: dirname(__DIR__) . '/var') . '/services/env');
