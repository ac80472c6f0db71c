<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

/** What its constructor has seen of the row that it was made of. */
#[\AllowDynamicProperties]
class Fetched
{
    /** @var list<mixed> */
    public array $seen;

    protected mixed $b = null;

    private mixed $a = null;

    public function __construct(mixed ...$arguments)
    {
        $this->seen = [$this->a, $this->b, $arguments];
    }
}
