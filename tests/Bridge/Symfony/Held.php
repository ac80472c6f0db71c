<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use Symfony\Contracts\Service\ResetInterface;

/** A service that holds a connection, as a lock on a file, until it is reset. */
final class Held implements ResetInterface
{
    /** @var resource|null */
    private mixed $lock = null;

    public function __construct(private readonly string $file)
    {
    }

    /** @return bool whether nothing else holds it */
    public function acquire(): bool
    {
        $this->lock = \fopen($this->file, 'c') ?: throw new \RuntimeException("$this->file cannot be opened");

        return \flock($this->lock, \LOCK_EX | \LOCK_NB);
    }

    public function reset(): void
    {
        $this->lock = null;
    }
}
