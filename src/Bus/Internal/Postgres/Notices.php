<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Postgres;

use Psr\Log\LoggerInterface;
use Psr\Log\LogLevel;
use Weft\Bus\Internal\Wakeup;

/**
 * What a log should know of the connection to the broker, until somebody writes it down.
 *
 * @internal
 */
final class Notices
{
    private const KEPT = 100;

    /** @var list<array{string, string}> level and text */
    private array $waiting = [];

    private readonly Wakeup $arrival;

    public function __construct()
    {
        $this->arrival = new Wakeup('news of the connection to PostgreSQL');
    }

    public function warn(string $text): void
    {
        $this->add(LogLevel::WARNING, $text);
    }

    public function notice(string $text): void
    {
        $this->add(LogLevel::NOTICE, $text);
    }

    /** Never returns. */
    public function follow(LoggerInterface $logger): never
    {
        while (true) {
            $generation = $this->arrival->generation;
            while ($this->waiting !== []) {
                [$level, $text] = \array_shift($this->waiting);
                $logger->log($level, $text);
            }
            $this->arrival->wait(since: $generation);
        }
    }

    private function add(string $level, string $text): void
    {
        $this->waiting[] = [$level, $text];
        if (\count($this->waiting) > self::KEPT) {
            \array_shift($this->waiting);
        }
        $this->arrival->notify();
    }
}
