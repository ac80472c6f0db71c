<?php

declare(strict_types=1);

namespace Psr\Clock;

/** PSR-20, as its text has it. */
interface ClockInterface
{
    public function now(): \DateTimeImmutable;
}
