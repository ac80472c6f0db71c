<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use Psr\Log\LoggerInterface;
use Weft\Bus\BlockedKey;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CircuitBreaker;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\Context;
use Weft\Bus\DeadLetterFilter;
use Weft\Bus\Retry;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Memory;
use Weft\Sql\Database;
use Weft\Tests\Bus\Fixtures\Deposit;
use Weft\Tests\Bus\Fixtures\SpyTransport;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;
use Weft\Tests\RecordingLogger;

use function Weft\async;
use function Weft\delay;

require_once __DIR__ . '/Fixtures/ordered.php';

/** Messages that have waited for their key: when they are handled, and how many at a time. */
final class ReleasedKeysTest extends BusTestCase
{
    use TemporaryDatabase;

    public function testAQueueWithReleasedKeysIsNotEmpty(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $bus = $this->bus(static function (Deposit $command) use (&$seen): void {
                $command->number === 0 && throw new \DomainException('the account is closed');
                $seen[] = $command->number;
            });
            self::block($bus, keys: 1, behind: 2);
            $bus->queue(self::QUEUE)->releaseKey('account:a1');
            $bus->send(new Deposit('a1', 3));
            self::drain($bus);

            self::assertSame([1, 2, 3], $seen);
            self::assertSame([], $bus->queue(self::QUEUE)->blockedKeys());
        });
    }

    public function testAWorkerThatStopsWhenTheQueueIsEmptyHandlesWhatAStoppedOneLeftOfAReleasedKey(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $bus = $this->bus(static function (Deposit $command) use (&$seen, &$bus): void {
                $command->number === 0 && throw new \DomainException('the account is closed');
                $seen[] = $command->number;
                $command->number === 2 && $bus->stop();
            });
            self::block($bus, keys: 1, behind: 4);
            $bus->queue(self::QUEUE)->releaseKey('account:a1');
            self::drain($bus);
            self::assertSame([1, 2], $seen);
            self::drain($bus);

            self::assertSame([1, 2, 3, 4], $seen);
        });
    }

    public function testAReleasedKeyThatFailsAgainDoesNotKeepTheQueueFromBeingEmpty(): void
    {
        $this->inRuntime(function (): void {
            $bus = $this->bus(static fn() => throw new \DomainException('the account is closed'));
            self::block($bus, keys: 1, behind: 2);
            $bus->queue(self::QUEUE)->releaseKey('account:a1');
            self::drain($bus);

            self::assertSame([[1, false]], \array_map(static fn(BlockedKey $key): array => [$key->waiting, $key->released], $bus->queue(self::QUEUE)->blockedKeys()));
        });
    }

    public function testReleasedKeysAreHandledWithinTheConcurrency(): void
    {
        $this->inRuntime(function (): void {
            $running = $most = $handled = 0;
            $bus = $this->bus(static function (Deposit $command) use (&$running, &$most, &$handled): void {
                $command->number === 0 && throw new \DomainException('the account is closed');
                $most = \max($most, ++$running);
                // The first handlers wait for each other: on a busy machine one may end before the next begins.
                do {
                    delay(0.005);
                } while ($most < 2);
                $running--;
                $handled++;
            });
            self::block($bus, keys: 20, behind: 2);
            foreach ($bus->queue(self::QUEUE)->blockedKeys() as $key) {
                $bus->queue(self::QUEUE)->releaseKey($key->key);
            }
            $bus->consume(self::QUEUE, concurrency: 2, options: new ConsumeOptions(stopWhenEmpty: true));

            self::assertSame([40, 2], [$handled, $most]);
        });
    }

    public function testMessagesBehindRetriedOnesAreHandledWithinTheConcurrency(): void
    {
        $this->inRuntime(function (): void {
            $broken = true;
            $running = $most = $handled = 0;
            $bus = $this->bus(static function () use (&$broken, &$running, &$most, &$handled): void {
                $broken && throw new \DomainException('not yet');
                $most = \max($most, ++$running);
                delay(0.005);
                $running--;
                $handled++;
            });
            self::block($bus, keys: 20, behind: 2);
            $broken = false;
            $bus->queue(self::QUEUE)->deadLetters()->retry();
            $bus->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(stopWhenEmpty: true));

            self::assertSame([60, 1], [$handled, $most]);
        });
    }

    public function testReleasedKeysAndNewMessagesOfOthersTakeTurns(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $bus = $this->bus(static function (Deposit $command) use (&$seen, &$bus): void {
                $command->number === 0 && throw new \DomainException('the account is closed');
                $seen[] = $command->account;
                // Its key is never idle.
                $command->account === 'busy' && \count($seen) < 60 && async(static fn() => $bus->send(new Deposit('busy', 1)))->await();
            });
            self::block($bus, keys: 1, behind: 10);
            $bus->queue(self::QUEUE)->releaseKey('account:a1');
            $bus->sendAll([new Deposit('busy', 1), new Deposit('busy', 1)]);
            $bus->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(stopWhenEmpty: true));

            self::assertLessThan(30, \array_search('a1', $seen, true));
            self::assertCount(10, \array_keys($seen, 'a1'));
        });
    }

    public function testTheNextMessageOfAKeyWaitsForAPlaceThatAnotherKeyHasTakenMeanwhile(): void
    {
        $this->inRuntime(function (): void {
            $running = $most = $handled = 0;
            $spy = new SpyTransport(new Memory());
            // A place is free as soon as the handler has ended.
            $spy->before = static fn(string $what) => $what === 'ack' && delay(0.002);
            $bus = $this->bus(static function () use (&$running, &$most, &$handled): void {
                $most = \max($most, ++$running);
                delay(0.005);
                $running--;
                $handled++;
            }, $spy);
            for ($key = 1; $key <= 20; $key++) {
                $bus->sendAll(\array_map(static fn(int $number): Deposit => new Deposit("a{$key}", $number), \range(1, 5)));
            }
            $bus->consume(self::QUEUE, concurrency: 2, options: new ConsumeOptions(prefetch: 200, stopWhenEmpty: true));

            self::assertSame([100, 2], [$handled, $most]);
        });
    }

    public function testTheNextMessageOfAKeyWaitsForTheBreaker(): void
    {
        $this->inRuntime(function (): void {
            $logger = new RecordingLogger();
            $started = [];
            $opened = null;
            $bus = $this->bus(static function (Deposit $command) use (&$started, &$opened, $logger): void {
                $command->account === 'b' && throw new \RuntimeException('the gateway is down');
                $started[] = \microtime(true);
                while (!$logger->hasRecord('error', 'Circuit breaker of queue {queue} opens')) {
                    delay(0.005);
                }
                $opened ??= \microtime(true);
            }, logger: $logger);
            $bus->sendAll([new Deposit('a', 1), new Deposit('a', 2), new Deposit('a', 3), new Deposit('b', 1)]);
            $bus->consume(self::QUEUE, concurrency: 2, options: new ConsumeOptions(stopWhenEmpty: true, breaker: new CircuitBreaker(failures: 1, pause: 4.0)));

            self::assertCount(3, $started);
            self::assertGreaterThan(0.5, $started[1] - $opened, 'a pause of 4 s, of which few milliseconds are over when it is noticed');
        });
    }

    public function testAKeyThatIsBlockedAgainMeanwhileStaysBlocked(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $broken = $held = true;
            $publishing = 0;
            $spy = new SpyTransport(new Memory());
            $bus = $this->bus(static function (Deposit $command, Context $context) use (&$seen, &$broken): void {
                if (($broken && $command->number === 0) || ($command->account === 'z' && $command->number === 1)) {
                    throw new \DomainException('not yet');
                }
                $seen[] = "{$command->account}{$command->number}";
                $command->number === 1 && $command->account[0] === 'a' && $context->send(new Deposit(null, 100));
            }, $spy);
            self::block($bus, keys: 2, behind: 1);
            $bus->sendAll(\array_map(static fn(int $number): Deposit => new Deposit('z', $number), \range(0, 2)));
            self::drain($bus);
            foreach ($bus->queue(self::QUEUE)->blockedKeys() as $key) {
                $bus->queue(self::QUEUE)->releaseKey($key->key);
            }
            // Two keys are replayed, so the third one, which was released when it was read, has to wait.
            $spy->before = static function (string $what) use (&$publishing, &$held): void {
                if ($what === 'publish' && $held) {
                    $publishing++;
                    while ($held) {
                        delay(0.005);
                    }
                }
            };
            $consumer = async(static fn() => $bus->consume(self::QUEUE, concurrency: 2, options: new ConsumeOptions(signals: false)));
            while ($publishing < 2) {
                delay(0.005);
            }
            $broken = false;
            $letters = $bus->queue(self::QUEUE)->deadLetters();
            foreach ($letters->peek() as $letter) {
                \str_contains($letter->body, '"z"') && $letters->retry(new DeadLetterFilter(id: $letter->messageId()));
            }
            $blocked = static fn(): array => \array_map(static fn(BlockedKey $key): array => [$key->key, $key->waiting, $key->released], $bus->queue(self::QUEUE)->blockedKeys());
            while (!\in_array(['account:z', 1, false], $blocked(), true)) {
                delay(0.005);
            }
            $held = false;
            while (\count($blocked()) > 1) {
                delay(0.005);
            }
            delay(0.1);
            $bus->stop();
            $consumer->await();

            self::assertSame([['account:z', 1, false]], $blocked());
            self::assertNotContains('z2', $seen, 'it waits for z1');
        });
    }

    private function bus(\Closure $handle, ?Transport $transport = null, ?LoggerInterface $logger = null): Bus
    {
        $bus = Bus::connect($transport ?? new Memory(), Database::connect($this->dsn()), new BusOptions(retry: new Retry(), logger: $logger))->handlers(new class ($handle) {
            public function __construct(private readonly \Closure $handle) {}

            #[CommandHandler]
            public function deposit(Deposit $command, Context $context): void
            {
                ($this->handle)($command, $context);
            }
        });
        $bus->queue(self::QUEUE)->declare();

        return $bus;
    }

    /** The handler fails with message 0 of each key; those behind it wait. */
    private static function block(Bus $bus, int $keys, int $behind): void
    {
        for ($number = 0; $number <= $behind; $number++) {
            $bus->sendAll(\array_map(static fn(int $key): Deposit => new Deposit("a{$key}", $number), \range(1, $keys)));
        }
        self::drain($bus);
        self::assertSame(\array_fill(0, $keys, $behind), \array_map(static fn(BlockedKey $key): int => $key->waiting, $bus->queue(self::QUEUE)->blockedKeys()));
    }
}
