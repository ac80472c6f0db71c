<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

final class Job
{
    /** @param string $what note; together: wait until so many are there; trust: one proxy, by a static property; become: a tenant and a locale, likewise; send and give up; fail; skip */
    public function __construct(public readonly string $what, public readonly int $number = 0)
    {
    }
}
