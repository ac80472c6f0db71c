<?php

declare(strict_types=1);

namespace Weft\Bridge\Psr;

use Psr\Clock\ClockInterface;
use Weft\Bus\Internal\Clock as BusClock;

/** The clock of PSR-20. In a test with {@see \Weft\Testing\TestBus} it is that of the bus, which the test sets. */
final class Clock implements ClockInterface
{
    /** @param \DateTimeZone|null $zone null: PHP's default time zone */
    public function __construct(private readonly ?\DateTimeZone $zone = null)
    {
    }

    public function now(): \DateTimeImmutable
    {
        $now = \DateTimeImmutable::createFromFormat('U.u', \sprintf('%.6F', BusClock::now()));
        \assert($now !== false);

        return $now->setTimezone($this->zone ?? new \DateTimeZone(\date_default_timezone_get()));
    }
}
