<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;
use PHPUnit\Framework\TestCase;
use Weft\Bus\Bus;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\Context;
use Weft\Bus\CommandHandler;
use Weft\Bus\EventListener;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\StoreCustomer;

use function Weft\run;
use function Weft\timeout;

require_once __DIR__ . '/Fixtures/messages.php';

abstract class BusTestCase extends TestCase
{
    protected const QUEUE = 'customers';

    /** The environment's name of the server whose database handlers use. */
    protected const SERVER = 'DATABASE_URL';

    /** Seconds; only ends a test that hangs. */
    private const DEADLINE = 180.0;

    /**
     * What fails on purpose is not to be told on the terminal.
     *
     * @before
     */
    #[Before]
    protected function silence(): void
    {
        \putenv('WEFT_LOG_LEVEL=emergency');
    }

    /** @after */
    #[After]
    protected function speakAgain(): void
    {
        \putenv('WEFT_LOG_LEVEL');
    }

    /** Runs a test in the runtime, with a deadline. */
    protected function inRuntime(\Closure $test, float $deadline = self::DEADLINE): void
    {
        run(static fn(): mixed => timeout($deadline, $test));
    }

    /** An object that handles StoreCustomer with the closure. */
    protected static function storing(\Closure $handle): object
    {
        return new class ($handle) {
            public function __construct(private readonly \Closure $handle) {}

            #[CommandHandler]
            public function store(StoreCustomer $command, Context $context): void
            {
                ($this->handle)($command, $context);
            }
        };
    }

    /** An object that listens to CustomerStored with the closure. */
    protected static function listening(\Closure $listen): object
    {
        return new class ($listen) {
            public function __construct(private readonly \Closure $listen) {}

            #[EventListener]
            public function stored(CustomerStored $event, Context $context): void
            {
                ($this->listen)($event, $context);
            }
        };
    }

    /** The same of another class, by which a bus knows its listeners. */
    protected static function alsoListening(\Closure $listen): object
    {
        return new class ($listen) {
            public function __construct(private readonly \Closure $listen) {}

            #[EventListener]
            public function stored(CustomerStored $event, Context $context): void
            {
                ($this->listen)($event, $context);
            }
        };
    }

    protected static function customer(int|string $id): StoreCustomer
    {
        return new StoreCustomer((string) $id, "name_{$id}", 'name@example.org');
    }

    /** @return iterable<StoreCustomer> */
    protected static function customers(int $count, int $from = 1): iterable
    {
        for ($id = $from; $id < $from + $count; $id++) {
            yield self::customer($id);
        }
    }

    protected static function drain(Bus $bus): int
    {
        return $bus->consume(self::QUEUE, options: new ConsumeOptions(stopWhenEmpty: true));
    }
}
