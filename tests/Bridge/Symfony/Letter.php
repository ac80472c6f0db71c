<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

/** A message whose transport has a serializer and a name of its own. */
final class Letter
{
    public function __construct(public readonly string $text)
    {
    }
}
