<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use Symfony\Contracts\Service\ResetInterface;

/** A service that keeps state of a message until it is reset. */
final class Notes implements ResetInterface
{
    /** @var list<string> */
    public array $taken = [];

    public function reset(): void
    {
        if ($this->taken === ['fail to reset 1']) {
            throw new \LogicException('the notes cannot be reset');
        }
        $this->taken = [];
    }
}
