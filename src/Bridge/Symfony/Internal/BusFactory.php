<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Internal;

use Psr\Log\LoggerInterface;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Sql\Database;

/**
 * Makes the bus of a container. The connection to the broker is that of the process.
 *
 * @internal
 */
final class BusFactory
{
    public function __construct(#[\SensitiveParameter] private readonly string $transport, private readonly ?Database $database, private readonly ?LoggerInterface $logger)
    {
    }

    /**
     * Declares a queue once in this process.
     *
     * @param \Closure(): void $declare
     */
    public function once(string $queue, \Closure $declare): void
    {
        Shared::once("$queue at $this->transport", function () use ($queue, $declare): void {
            $declare();
            Shared::uses($queue, fn (): int => $this->create()->queue($queue)->depth());
        });
    }

    /** @param list<object> $handlers */
    public function create(array $handlers = []): Bus
    {
        return Bus::connect(Shared::transport($this->transport, $this->database), $this->database, new BusOptions(logger: $this->logger))->handlers(...$handlers);
    }
}
