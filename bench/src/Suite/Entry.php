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

    /** @return list<string> of scripts/services, what it needs */
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
