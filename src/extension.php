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
        $loaded === null => 'Weft needs the PHP extension weft, which is not loaded: php -d extension=/path/to/libweft.so, or a line in php.ini (docs/guides/install.md)',
        $loaded !== Version::LIBRARY => 'Weft library ' . Version::LIBRARY . " does not match the loaded extension {$loaded}. Install the same version of both: pie install weft/ext-weft:"
            . Version::LIBRARY,
        Version::extensionInterfaceHash() !== Version::INTERFACE_HASH => 'Weft library ' . Version::LIBRARY . ' with the interface hash ' . Version::INTERFACE_HASH
            . ' does not match the loaded extension with ' . (Version::extensionInterfaceHash() ?? 'none') . '. They were built from different sources. '
            . 'Run `make build` in a source checkout, or install the same release of both',
        default => null,
    };
    $problem === null || spl_autoload_register(static function (string $class) use ($problem): void {
        if (in_array($class, [Bus::class, Codec::class, Json::class, Scheduler::class], true) || str_starts_with($class, 'Weft\\Native\\')) {
            throw new Error("{$problem}. Details: bin/weft doctor");
        }
    }, prepend: true);
})();
