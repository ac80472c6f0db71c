<?php

declare(strict_types=1);

namespace App;

/** The body of POST /greetings. */
final class NewGreeting
{
    public function __construct(public readonly string $name)
    {
    }
}
