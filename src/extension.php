<?php

declare(strict_types=1);

use Weft\Internal\LoadedExtension;

// The error without the extension, or with one of another version or of other sources. No autoloader is called for a function, so this one
// refuses the classes that call one of the extension's functions, whose code says so.
(static function (): void {
    $problem = LoadedExtension::problem();
    $problem === null || spl_autoload_register(static function (string $class): void {
        $isNative = str_starts_with($class, 'Weft\\Native\\');
        if (!$isNative && str_starts_with($class, 'Weft\\')) {
            $code = @file_get_contents(__DIR__ . '/' . strtr(substr($class, strlen('Weft\\')), '\\', '/') . '.php');
            $isNative = preg_match('{\bNative\\\\\w+\(|^use function Weft\\\\Native\\\\}m', (string) $code) === 1;
        }
        $isNative && LoadedExtension::require();
    }, prepend: true);
})();
