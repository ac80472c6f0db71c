<?php

declare(strict_types=1);

namespace Weft\Bench\Suite;

/** One benchmark of the suite. */
enum Entry: string
{
    case Bus = 'bus';
    case Pool = 'pool';
    case Http = 'http';
    case Grpc = 'grpc';
    case Rinha = 'rinha';

    /**
     * What it takes on the machine of bench/README.md, with its servers' start.
     *
     * @param bool $matrix of the bus, in place of its race
     */
    public function usualSeconds(bool $short, bool $matrix = false): float
    {
        return match ($this) {
            self::Bus => ($matrix ? 3.0 : 1.0) * ($short ? 60.0 : 1130.0),
            self::Pool => $short ? 30.0 : 250.0,
            self::Http => $short ? 110.0 : 830.0,
            self::Grpc => $short ? 130.0 : 680.0,
            self::Rinha => $short ? 100.0 : 460.0,
        };
    }

    /** @return list<string> the servers it needs, as in scripts/services */
    public function services(): array
    {
        return match ($this) {
            self::Bus => ['rabbitmq', 'postgres'],
            self::Pool => ['mariadb'],
            self::Http => ['postgres'],
            self::Grpc, self::Rinha => [],
        };
    }
}
