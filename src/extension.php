<?php

declare(strict_types=1);

use Weft\Bus\Bus;
use Weft\Protobuf\Codec;
use Weft\Protobuf\Json;
use Weft\Runtime\Internal\Scheduler;
use Weft\Version;

// The error without the extension, or with one of another version or of other sources. No autoloader is called for a function, so
// the classes that call one first are refused as well.
(static function (): void {
    $loaded = Version::extension();
    $problem = match (true) {
        $loaded === null => 'needs the PHP extension weft, which is not loaded: php -d extension=/path/to/libweft.so, or a line in php.ini (docs/guides/install.md)',
        $loaded !== Version::LIBRARY => 'is of version ' . Version::LIBRARY . ', and the PHP extension weft that is loaded of ' . $loaded
            . ': install the same version of both, such as with pie install weft/ext-weft:' . Version::LIBRARY,
        Version::extensionContract() !== Version::CONTRACT => 'has the native contract ' . Version::CONTRACT . ', and the PHP extension weft that is loaded has '
            . (Version::extensionContract() ?? 'none') . ': they were built from different sources of version ' . Version::LIBRARY
            . '; run `make build` in a source checkout, or install the same release of both',
        default => null,
    };
    $problem === null || spl_autoload_register(static function (string $class) use ($problem): void {
        if (in_array($class, [Bus::class, Codec::class, Json::class, Scheduler::class], true) || str_starts_with($class, 'Weft\\Native\\')) {
            throw new Error("Weft {$problem}; bin/weft doctor says more");
        }
    }, prepend: true);
})();
