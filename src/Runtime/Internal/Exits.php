<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Native\Realm;
use Weft\Runtime\ExitException;

/**
 * `exit()` in realms.
 *
 * @internal
 */
final class Exits
{
    /**
     * Calls `$work`, which fails where it calls `exit()` instead of ending the process.
     *
     * @template T
     *
     * @param \Closure(): T $work
     *
     * @return T
     *
     * @throws ExitException
     */
    public static function turnIntoExceptions(\Closure $work): mixed
    {
        $result = null;
        $hasExited = Realm::untilExit(static function () use ($work, &$result): void {
            $result = $work();
        });
        if ($hasExited) {
            throw self::exception();
        }

        /** @var T $result */
        return $result;
    }

    public static function exception(): ExitException
    {
        return new ExitException('exit() was called in a realm: it ends this task or call, and not the process');
    }
}
