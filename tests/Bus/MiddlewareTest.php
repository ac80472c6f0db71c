<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\Context;
use Weft\Bus\Middleware;
use Weft\Bus\Next;
use Weft\Bus\Retry;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;

final class MiddlewareTest extends BusTestCase
{
    use TemporaryDatabase;

    public function testMiddlewareRunsAroundTheHandlerTheFirstOutermost(): void
    {
        $this->inRuntime(function (): void {
            $log = [];
            $outer = self::around(function (object $message, Context $context, Next $next) use (&$log): mixed {
                $log[] = "outer before {$message->id} in {$context->handler()}";
                $result = $next($message, $context);
                $log[] = 'outer after';

                return $result;
            });
            $inner = self::around(function (object $message, Context $context, Next $next) use (&$log): mixed {
                $log[] = 'inner before';
                $next($message, $context);
                $log[] = 'inner after';

                return null;
            });
            $bus = Bus::connect('memory:', options: new BusOptions(middleware: [$outer, $inner]))->handlers(new class ($log) {
                public function __construct(private array &$log) {}

                #[CommandHandler]
                public function store(StoreCustomer $command): void
                {
                    $this->log[] = 'handler';
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));
            self::drain($bus);

            self::assertMatchesRegularExpression('/^outer before 7 in .+::store$/s', $log[0]);
            self::assertSame(['inner before', 'handler', 'inner after', 'outer after'], \array_slice($log, 1));
        });
    }

    public function testAnExceptionOfMiddlewareIsTheHandlersFailureAndMessagesOfMiddlewareAreItsEffects(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect($this->dsn());
            $database->execute('CREATE TABLE effects (id TEXT)');
            $heard = [];
            $calls = 0;
            $middleware = self::around(function (object $message, Context $context, Next $next) use (&$calls): mixed {
                if (!$message instanceof StoreCustomer) {
                    return $next($message, $context);
                }
                $context->publish(new CustomerStored("{$message->id} try " . ++$calls));
                $context->transaction()?->execute('INSERT INTO effects VALUES (?)', ["audit {$message->id}"]);
                $next($message, $context);
                if ($calls === 1) {
                    throw new \DomainException('after the handler');
                }

                return null;
            });
            $bus = Bus::connect('memory:', $database, new BusOptions(retry: new Retry(), middleware: [$middleware]))->handlers(
                new class {
                    #[CommandHandler]
                    #[Retry(immediate: 1)]
                    public function store(StoreCustomer $command, Transaction $transaction): void
                    {
                        $transaction->execute('INSERT INTO effects VALUES (?)', [$command->id]);
                    }
                },
                self::listening(function (CustomerStored $event) use (&$heard): void {
                    $heard[] = $event->id;
                }),
            );
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));
            self::drain($bus);

            self::assertSame(2, $calls);
            self::assertSame(['audit 7', '7'], $database->execute('SELECT id FROM effects')->column());
            self::assertSame(['7 try 2'], $heard);
        });
    }

    public function testAHandlerThatMiddlewareSkipsCountsAsHandled(): void
    {
        $this->inRuntime(function (): void {
            $skip = self::around(static fn(object $message, Context $context, Next $next): mixed => null);
            $bus = Bus::connect('memory:', options: new BusOptions(middleware: [$skip]))
                ->handlers(self::storing(static fn() => self::fail('the handler was skipped')));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));
            self::drain($bus);

            self::assertSame([1, 0], [$bus->admin()->stats()->commands, $bus->queue(self::QUEUE)->deadLetters()->count()]);
        });
    }

    /** @param \Closure(object, Context, Next): mixed $handle */
    private static function around(\Closure $handle): Middleware
    {
        return new class ($handle) implements Middleware {
            public function __construct(private readonly \Closure $handle) {}

            public function handle(object $message, Context $context, Next $next): mixed
            {
                return ($this->handle)($message, $context, $next);
            }
        };
    }
}
