<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\Context;
use Weft\Bus\HandlerTimeoutException;
use Weft\Bus\Retry;
use Weft\Bus\Timeout;
use Weft\Runtime\CancelledException;
use Weft\Runtime\TimeoutException;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\MariaDb;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Bus\Fixtures\StoreCustomer;

use function Weft\async;
use function Weft\delay;
use function Weft\timeout;

final class TimeoutTest extends BusTestCase
{
    use MariaDb;
    use Servers;

    public function testAHandlerThatTakesTooLongIsCancelledWithEverythingItHasStarted(): void
    {
        $this->inRuntime(function (): void {
            $log = [];
            $bus = Bus::connect('memory:', options: new BusOptions(retry: new Retry()))->handlers(new class ($log) {
                public function __construct(private array &$log) {}

                #[CommandHandler]
                #[Timeout(0.05)]
                public function store(StoreCustomer $command, Context $context): void
                {
                    $context->publish(new CustomerStored($command->id));
                    async(function (): void {
                        try {
                            delay(30.0);
                        } catch (CancelledException $cancelled) {
                            $this->log[] = 'child cancelled';
                            throw $cancelled;
                        }
                    });
                    try {
                        delay(30.0);
                    } finally {
                        $this->log[] = 'handler cancelled';
                    }
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));
            $started = \microtime(true);
            self::drain($bus);

            self::assertLessThan(20.0, \microtime(true) - $started, 'not the 30 seconds of the handler');
            \sort($log);
            self::assertSame(['child cancelled', 'handler cancelled'], $log);
            self::assertSame(1, $bus->admin()->stats()->sent, 'only the command was sent');
            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame(HandlerTimeoutException::class, $letter->errorClass());
            self::assertStringContainsString('::store() did not handle message ' . $letter->messageId() . ' within 0.05 seconds', $letter->errorMessage());
            self::assertStringContainsString('waiting for', $letter->errorMessage());
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAStatementThatRunsTooLongIsCancelledOnItsServerAndItsTransactionRolledBack(string $server, string $sleep, string $running): void
    {
        $this->inRuntime(function () use ($server, $sleep, $running): void {
            $database = $server === 'mariadb' ? $this->mariaDb() : $this->database();
            $calls = 0;
            $bus = Bus::connect('memory:', $database)->handlers(new class ($calls, $sleep) {
                public function __construct(private int &$calls, private readonly string $sleep) {}

                #[CommandHandler]
                #[Timeout(0.2)]
                // More than one: on a busy machine an ordinary try may take longer than the time-out, too.
                #[Retry(immediate: 20)]
                public function store(StoreCustomer $command, Transaction $transaction): void
                {
                    $transaction->execute('INSERT INTO effects (id, listener) VALUES (?, ?)', [$command->id, 'try ' . ++$this->calls]);
                    if ($this->calls === 1) {
                        // Nobody asks for its answer: it travels with the commit.
                        $transaction->execute($this->sleep);
                    }
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));
            self::drain($bus);

            self::assertGreaterThan(1, $calls);
            self::assertSame([['id' => '7', 'listener' => "try $calls"]], $database->execute('SELECT id, listener FROM effects')->rows());
            // Far less than the statement would run.
            timeout(30.0, static function () use ($database, $running): void {
                while ($database->execute($running)->value() > 0) {
                    delay(0.02);
                }
            });
            self::assertSame(0, $bus->queue(self::QUEUE)->deadLetters()->count());
            $database->close();
        });
    }

    /** @return iterable<string, array{string, string, string}> with what counts the statements that run */
    public static function databases(): iterable
    {
        yield 'PostgreSQL' => ['postgres', 'SELECT pg_sleep(60)', "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()"];
        yield 'MariaDB or MySQL' => ['mariadb', 'SELECT sleep(59.9)', "SELECT count(*) FROM information_schema.processlist WHERE info LIKE '%sleep(59.9)%' AND id <> connection_id()"];
    }

    public function testTheTimeoutOfTheBusIsForHandlersWithoutOneAndATimeoutOfTheHandlersOwnIsItsFailure(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect('memory:', options: new BusOptions(retry: new Retry(), timeout: 0.05))->handlers(new class {
                #[CommandHandler]
                #[Timeout(10.0)]
                public function store(StoreCustomer $command): void
                {
                    $command->id === '1' ? delay(0.15) : timeout(0.01, static fn() => delay(30.0));
                }
            }, self::listening(static fn() => delay(30.0)));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(2));
            $bus->publish(new CustomerStored('3'));
            self::drain($bus);

            $errors = \array_map(static fn($letter): string => $letter->errorClass(), $bus->queue(self::QUEUE)->deadLetters()->peek());
            \sort($errors);
            self::assertSame([TimeoutException::class], \array_slice($errors, -1));
            self::assertSame(1, $bus->admin()->stats()->commands);
            self::assertSame(HandlerTimeoutException::class, $errors[0] ?? null);
        });
    }

    public function testAHandlerThatEndsInTimeIsNotCancelledLater(): void
    {
        $this->inRuntime(function (): void {
            $ended = 0;
            $bus = Bus::connect('memory:', options: new BusOptions(timeout: 1.0))->handlers(self::storing(static function () use (&$ended): void {
                delay(0.25);
                $ended++;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(50));
            $bus->consume(self::QUEUE, concurrency: 10, options: new ConsumeOptions(stopWhenEmpty: true));

            self::assertSame(50, $ended);
        });
    }

    /** @dataProvider impossible */
    #[DataProvider('impossible')]
    public function testATimeoutMustBeAboveZero(float $seconds): void
    {
        $this->expectExceptionMessage('The timeout of a handler must be above 0 seconds, got ');
        $this->expectException(\ValueError::class);
        Bus::connect('memory:', options: new BusOptions(timeout: $seconds));
    }

    /** @return iterable<array{float}> */
    public static function impossible(): iterable
    {
        yield [0.0];
        yield [-1.0];
        yield [\NAN];
    }
}
