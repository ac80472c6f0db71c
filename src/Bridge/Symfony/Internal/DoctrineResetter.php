<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Internal;

use Doctrine\DBAL\Connection;
use Doctrine\Persistence\ConnectionRegistry;
use Symfony\Component\DependencyInjection\ContainerInterface;
use Symfony\Contracts\Service\ResetInterface;

/**
 * Closes DBAL's connections after a request or message: a transaction or settings of the session that it has left open are undone, and the
 * connection of the pool is free. Connecting again costs nothing, since the pool keeps it.
 *
 * @internal
 */
final class DoctrineResetter implements ResetInterface
{
    public function __construct(private readonly ?ConnectionRegistry $registry, private readonly ContainerInterface $container)
    {
    }

    public function reset(): void
    {
        if ($this->registry === null) {
            return;
        }
        foreach ($this->registry->getConnectionNames() as $name => $service) {
            // DoctrineBundle may ask the server for its version when it makes a connection, so none is made here.
            if ($this->container->has($service) && !$this->container->initialized($service)) {
                continue;
            }
            $connection = $this->registry->getConnection((string) $name);
            if ($connection instanceof Connection && $connection->isConnected()) {
                self::close($connection);
            }
        }
    }

    private static function close(Connection $connection): void
    {
        // DBAL keeps this mark when it closes, and would refuse the next commit. Only the outermost rollback clears it.
        $isMarked = $connection->isTransactionActive() && $connection->isRollbackOnly();
        try {
            for ($level = $isMarked ? $connection->getTransactionNestingLevel() : 0; $level > 0; --$level) {
                $connection->rollBack();
            }
        } finally {
            $connection->close();
        }
    }
}
