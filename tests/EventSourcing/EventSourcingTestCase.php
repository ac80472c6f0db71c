<?php

declare(strict_types=1);

namespace Weft\Tests\EventSourcing;

use PHPUnit\Framework\TestCase;
use Weft\EventSourcing\EventStore;
use Weft\EventSourcing\RecordedEvent;
use Weft\Tests\EventSourcing\Fixtures\AccountOpened;
use Weft\Tests\EventSourcing\Fixtures\Deposited;
use Weft\Tests\EventSourcing\Fixtures\Noted;
use Weft\Tests\Sql\Support\Databases;

use function Weft\run;
use function Weft\timeout;

require_once __DIR__ . '/Fixtures/accounts.php';

abstract class EventSourcingTestCase extends TestCase
{
    use Databases;

    protected function store(string $kind, int $size = 10): EventStore
    {
        return new EventStore($this->database($kind, $size), AccountOpened::class, Deposited::class, Noted::class);
    }

    protected function inRuntime(\Closure $test, float $deadline = 60.0): void
    {
        run(static fn(): mixed => timeout($deadline, $test));
    }

    /**
     * @param list<RecordedEvent> $events
     * @return list<int|string>
     */
    protected static function contents(array $events): array
    {
        return \array_map(static fn(RecordedEvent $event): int|string => match ($event->event::class) {
            Deposited::class => $event->event->amount,
            Noted::class => $event->event->text,
            default => $event->event::class,
        }, $events);
    }
}
