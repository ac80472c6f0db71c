<?php

declare(strict_types=1);

namespace Weft\Internal;

use Weft\Runtime\Internal\CallSites;
use Weft\UsageError;

/**
 * Refuses generators as code to call: a call returns before the body of a generator has begun, so nothing of it would happen.
 *
 * @internal
 */
final class Generators
{
    /**
     * @param string $what names the code, such as `The background task "import"`
     *
     * @throws UsageError
     */
    public static function refuse(\Closure $code, string $what): void
    {
        if ((new \ReflectionFunction($code))->isGenerator()) {
            throw self::error($code, $what, 'is a generator, which would return before its body runs');
        }
    }

    /**
     * The same for what the code has returned: a function may call a generator.
     *
     * @throws UsageError
     */
    public static function refuseResult(mixed $returned, \Closure $code, string $what): void
    {
        if ($returned instanceof \Generator) {
            throw self::error($code, $what, 'returned a generator, whose body has not run');
        }
    }

    private static function error(\Closure $code, string $what, string $problem): UsageError
    {
        return new UsageError("{$what} (" . CallSites::nameOf($code) . ' at ' . CallSites::originOf($code) . ") {$problem}: call functions instead of `yield`");
    }
}
