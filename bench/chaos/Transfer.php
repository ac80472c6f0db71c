<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos\Work;

/** What the driver sends, numbered; how it is to go wrong is part of it, so that a seed repeats it. */
final class Transfer
{
    public const WELL = 'well';
    /** Fails the first time. */
    public const STUMBLE = 'stumble';
    /** Fails every time. */
    public const POISON = 'poison';
    /** Takes its process along, every time. */
    public const CRASH = 'crash';
    /** Its event leaves later. */
    public const LATER = 'later';

    public function __construct(
        public readonly int $number,
        public readonly string $manner,
    ) {
    }
}
