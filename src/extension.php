<?php

declare(strict_types=1);

use Weft\Bus\Bus;
use Weft\Internal\LoadedExtension;
use Weft\Protobuf\Codec;
use Weft\Protobuf\Json;
use Weft\Runtime\Internal\Scheduler;

// The error without the extension, or with one of another version or of other sources. No autoloader is called for a function, so
// the classes that call one first are refused as well.
(static function (): void {
    $problem = LoadedExtension::problem();
    $problem === null || spl_autoload_register(static function (string $class) use ($problem): void {
        if (in_array($class, [Bus::class, Codec::class, Json::class, Scheduler::class], true) || str_starts_with($class, 'Weft\\Native\\')) {
            throw new Error("{$problem}. Details: bin/weft doctor");
        }
    }, prepend: true);
})();
