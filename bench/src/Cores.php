<?php

declare(strict_types=1);

namespace Weft\Bench;

/** Keeps the server under measurement and the load generator off each other's core, where there are two. */
final class Cores
{
    /** @return list<string> to be put before the server's command: the first core is its */
    public static function server(): array
    {
        return self::pin(0);
    }

    /** @return list<string> to be put before the load generator's command: the second core is its */
    public static function load(): array
    {
        return self::pin(1);
    }

    /** @return list<string> */
    private static function pin(int $core): array
    {
        return Machine::cores() > 1 ? ['taskset', '--cpu-list', (string) $core] : [];
    }
}
