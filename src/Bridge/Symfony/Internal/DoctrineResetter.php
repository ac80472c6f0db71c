<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Internal;

use Doctrine\DBAL\Connection;
use Doctrine\Persistence\ConnectionRegistry;
use Symfony\Contracts\Service\ResetInterface;

/**
 * Closes DBAL's connections after a request: what it has left open, a transaction or settings of the session, is undone, and the
 * connection of the pool is free. Connecting again costs nothing, since the pool keeps it.
 *
 * @internal
 */
final class DoctrineResetter implements ResetInterface
{
    public function __construct(private readonly ?ConnectionRegistry $registry = null)
    {
    }

    public function reset(): void
    {
        foreach ($this->registry?->getConnections() ?? [] as $connection) {
            if ($connection instanceof Connection && $connection->isConnected()) {
                $connection->close();
            }
        }
    }
}
