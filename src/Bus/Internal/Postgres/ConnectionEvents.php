<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Postgres;

use Psr\Log\LoggerInterface;
use Psr\Log\LogLevel;
use Weft\Bus\Internal\Wakeup;

/**
 * Connection events of the broker, until they are logged.
 *
 * @internal
 */
final class ConnectionEvents
{
    private const MAX_EVENTS = 100;

    /** @var list<array{string, string, array<string, string>}> level, message and its context */
    private array $waiting = [];

    private readonly Wakeup $arrival;

    public function __construct()
    {
        $this->arrival = new Wakeup('news of the connection to PostgreSQL');
    }

    /** @param array<string, string> $context */
    public function warn(string $message, array $context = []): void
    {
        $this->add(LogLevel::WARNING, $message, $context);
    }

    /** @param array<string, string> $context */
    public function notice(string $message, array $context = []): void
    {
        $this->add(LogLevel::NOTICE, $message, $context);
    }

    /** Never returns. */
    public function follow(LoggerInterface $logger): never
    {
        while (true) {
            $generation = $this->arrival->generation;
            while ($this->waiting !== []) {
                [$level, $message, $context] = \array_shift($this->waiting);
                $logger->log($level, $message, $context);
            }
            $this->arrival->wait(since: $generation);
        }
    }

    /** @param array<string, string> $context */
    private function add(string $level, string $message, array $context): void
    {
        $this->waiting[] = [$level, $message, $context];
        if (\count($this->waiting) > self::MAX_EVENTS) {
            \array_shift($this->waiting);
        }
        $this->arrival->notify();
    }
}
