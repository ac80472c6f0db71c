<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Psr\Container\ContainerInterface;
use Psr\Log\LoggerInterface;
use Weft\Bus\Batch;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\Context;
use Weft\Bus\DuplicateHandlerError;
use Weft\Bus\EventListener;
use Weft\Bus\HandlerInfo;
use Weft\Bus\Header;
use Weft\Bus\InvalidHandlerError;
use Weft\Bus\InvalidMessageClassError;
use Weft\Bus\MessageOptions;
use Weft\Bus\MessageType;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Outgoing;
use Weft\InvalidDsnError;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\FailingListener;
use Weft\Tests\Bus\Fixtures\ForgetCustomer;
use Weft\Tests\Bus\Fixtures\Mail;
use Weft\Tests\Bus\Fixtures\Notifier;
use Weft\Tests\Bus\Fixtures\Pager;
use Weft\Tests\Bus\Fixtures\PagerGhost1a2b3c4;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Bus\Fixtures\TextMessage;
use Weft\Tests\RecordingLogger;

require_once __DIR__ . '/Fixtures/inherited.php';

final class HandlersTest extends BusTestCase
{
    public function testASecondHandlerOfACommandIsRefusedAndBothAreNamed(): void
    {
        $first = new class {
            #[CommandHandler]
            public function one(StoreCustomer $command): void {}
        };
        $second = new class {
            #[CommandHandler]
            public function two(StoreCustomer $command): void {}
        };
        $bus = Bus::connect('memory:')->handlers($first);

        $this->expectException(DuplicateHandlerError::class);
        $this->expectExceptionMessageMatches('/' . \preg_quote(StoreCustomer::class) . ' has two handlers, .*::one\(\) and .*::two\(\)/s');

        $bus->handlers($second);
    }

    public function testAClassIsACommandOrAnEventButNotBoth(): void
    {
        $this->expectException(DuplicateHandlerError::class);
        $this->expectExceptionMessageMatches('/is both event for .*FailingListener::stored\(\) and command for .*::handle\(\)/s');

        Bus::connect('memory:')->handlers(new FailingListener(''), new class {
            #[CommandHandler]
            public function handle(CustomerStored $event): void {}
        });
    }

    public function testAHandlerThatIsRegisteredTwiceIsNamed(): void
    {
        $handler = new class {
            #[CommandHandler]
            public function one(StoreCustomer $command): void {}
        };

        $this->expectException(DuplicateHandlerError::class);
        $this->expectExceptionMessageMatches('/^Handler .*::one\(\) is registered twice; /s');

        Bus::connect('memory:')->handlers($handler, $handler);
    }

    public function testTwoObjectsOfOneClassCannotBothListen(): void
    {
        $wide = static fn(): object => new class {
            #[EventListener]
            public function on(ParcelEvent $event): void {}
        };
        $narrow = static fn(): object => new FailingListener('');
        foreach ([$wide, $narrow] as $listener) {
            try {
                Bus::connect('memory:')->handlers($listener(), $listener());
                self::fail('registered');
            } catch (DuplicateHandlerError $error) {
                self::assertStringContainsString('() is registered twice; the inbox and retries know a listener by its class and method', $error->getMessage());
            }
        }
    }

    public function testNothingIsRegisteredOfAServiceThatIsRefused(): void
    {
        $bus = Bus::connect('memory:')->handlers(new class {
            #[CommandHandler]
            public function store(StoreCustomer $command): void {}
        });
        $refused = new class {
            #[EventListener]
            public function wide(ParcelEvent $event): void {}

            #[CommandHandler]
            public function forget(ForgetCustomer $command): void {}

            #[CommandHandler]
            public function store(StoreCustomer $command): void {}
        };
        foreach ([1, 2] as $_) {
            try {
                $bus->handlers($refused);
                self::fail('registered');
            } catch (DuplicateHandlerError $error) {
                self::assertStringContainsString(StoreCustomer::class . ' has two handlers', $error->getMessage());
            }
        }
        self::assertCount(1, $bus->admin()->handlers());

        $bus->handlers(new class {
            #[CommandHandler]
            public function forget(ForgetCustomer $command): void {}
        });
        self::assertCount(2, $bus->admin()->handlers());
    }

    public function testEachServiceThatInheritsAListenerHasItsEffect(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect('sqlite::memory:');
            $database->execute('CREATE TABLE notes (note TEXT)');
            $bus = Bus::connect('memory:', $database)->handlers(new Mail(), new TextMessage());
            $bus->queue(self::QUEUE)->declare();
            $bus->publish(new CustomerStored('1'));
            self::drain($bus);

            self::assertSame(['mail', 'text'], $database->execute('SELECT note FROM notes ORDER BY note')->column());
            self::assertSame(0, $bus->admin()->stats()->duplicates);
            self::assertSame([Mail::class . '::stored', TextMessage::class . '::stored'], \array_map(static fn(HandlerInfo $handler): string => $handler->handler, $bus->admin()->handlers()));
            $database->close();
        });
    }

    public function testAMessageThatNamesTheDeclaringClassComesBackForThoseThatInherit(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect('sqlite::memory:');
            $database->execute('CREATE TABLE notes (note TEXT)');
            $memory = new Memory();
            $bus = Bus::connect($memory, $database)->handlers(new Mail(), new TextMessage(), self::listening(static fn() => $database->execute("INSERT INTO notes VALUES ('other')")));
            $bus->queue(self::QUEUE)->declare();
            $memory->put(self::QUEUE, [new Outgoing(CustomerStored::class, '{"id":"1"}', [Header::MESSAGE_ID => 'before', Header::FAILED_HANDLER => Notifier::class . '::stored'])]);
            self::drain($bus);

            self::assertSame(['mail', 'text'], $database->execute('SELECT note FROM notes ORDER BY note')->column());
            self::assertSame(0, $bus->queue(self::QUEUE)->deadLetters()->count());
            $database->close();
        });
    }

    public function testALazyServiceIsNamedAfterItsClassAndNotAfterItsGeneratedOne(): void
    {
        $bus = Bus::connect('memory:')->handlers(new PagerGhost1a2b3c4());

        self::assertSame(Pager::class . '::stored', $bus->admin()->handlers()[0]->handler);
    }

    /** @dataProvider invalidHandlers */
    #[DataProvider('invalidHandlers')]
    public function testAMethodThatCannotBeAHandlerIsRefusedAndNamed(object $service, string $message): void
    {
        $this->expectException(InvalidHandlerError::class);
        $this->expectExceptionMessageMatches('/' . \preg_quote($message, '/') . '/');

        Bus::connect('memory:')->handlers($service);
    }

    public static function invalidHandlers(): iterable
    {
        yield 'no method' => [new \ArrayObject(), 'ArrayObject has no method marked with'];
        yield 'private' => [new class {
            #[CommandHandler]
            private function handle(StoreCustomer $command): void {}
        }, '::handle() is not public'];
        yield 'static' => [new class {
            #[CommandHandler]
            public static function handle(StoreCustomer $command): void {}
        }, '::handle() is static'];
        yield 'generator' => [new class {
            #[CommandHandler]
            public function handle(StoreCustomer $command): iterable
            {
                yield 1;
            }
        }, '::handle() is a generator'];
        yield 'both' => [new class {
            #[CommandHandler, EventListener]
            public function handle(StoreCustomer $command): void {}
        }, '::handle() is marked as both'];
        yield 'no parameter' => [new class {
            #[CommandHandler]
            public function handle(): void {}
        }, '::handle() has no parameter for the message'];
        yield 'no type' => [new class {
            #[CommandHandler]
            public function handle($command): void {}
        }, '::handle() has no type for its message $command'];
        yield 'union with a scalar' => [new class {
            #[CommandHandler]
            public function handle(StoreCustomer|string $command): void {}
        }, 'which must be a class or several of them'];
        yield 'any object' => [new class {
            #[EventListener]
            public function handle(object $event): void {}
        }, 'may do so with a pattern of types'];
        yield 'any command' => [new class {
            #[CommandHandler]
            public function handle(object $command): void {}
        }, 'may do so with a pattern of types'];
        yield 'nullable' => [new class {
            #[CommandHandler]
            public function handle(?StoreCustomer $command): void {}
        }, 'which must be a class'];
        yield 'scalar' => [new class {
            #[CommandHandler]
            public function handle(string $command): void {}
        }, '::handle() has the type string for its message, which must be a class'];
        yield 'variadic' => [new class {
            #[CommandHandler]
            public function handle(StoreCustomer ...$command): void {}
        }, 'as a variadic'];
        yield 'no such class' => [new class {
            #[CommandHandler]
            public function handle(Cmdd $command): void {}
        }, '::handle() takes Weft\Tests\Bus\Cmdd, a class that does not exist, at ' . __FILE__ . ':' . (__LINE__ - 1)];
        yield 'a batch of no such class' => [new class {
            #[CommandHandler, Batch(of: Cmdd::class)]
            public function handle(array $commands): void {}
        }, '::handle() takes Weft\Tests\Bus\Cmdd, a class that does not exist, at ' . __FILE__ . ':' . (__LINE__ - 1)];
        yield 'unknown service' => [new class {
            #[CommandHandler]
            public function handle(StoreCustomer $command, Context $context, \ArrayObject $things): void {}
        }, '::handle() has the parameter $things (ArrayObject), which cannot be resolved'];
        yield 'untyped service' => [new class {
            #[CommandHandler]
            public function handle(StoreCustomer $command, $things): void {}
        }, 'has the parameter $things (no type)'];
        yield 'by reference' => [new class {
            #[CommandHandler]
            public function handle(StoreCustomer $command, Context &$context): void {}
        }, 'takes $context by reference'];
        yield 'no database' => [new class {
            #[CommandHandler]
            public function handle(StoreCustomer $command, Transaction $transaction): void {}
        }, '::handle() has a Transaction parameter, but the bus was connected without a database'];
        yield 'a misspelt attribute' => [new class {
            #[CommandHandler, Timout(5.0)]
            public function handle(StoreCustomer $command): void {}
        }, '::handle() is marked with #[Weft\\Tests\\Bus\\Timout], which is not a class. Is #[Weft\\Bus\\Timeout] meant? Check the spelling and the use statements'];
        yield 'an attribute without a use statement' => [new class {
            #[CommandHandler]
            public function handle(StoreCustomer $command): void {}

            #[QueryHandler]
            public function ask(CustomerStored $query): void {}
        }, '::ask() is marked with #[Weft\\Tests\\Bus\\QueryHandler]'];
        yield 'an attribute of the class' => [new #[Retri] class {
            #[CommandHandler]
            public function handle(StoreCustomer $command): void {}
        }, 'is marked with #[Weft\\Tests\\Bus\\Retri]'];
        yield 'arguments of a command handler' => [new class {
            #[CommandHandler(validationEnabled: true, executionTimeout: 1)]
            public function handle(StoreCustomer $command): void {}
        }, '::handle() has an invalid #[Weft\\Bus\\CommandHandler]: '];
        yield 'arguments of a query handler' => [new class {
            #[\Weft\Bus\QueryHandler('cached')]
            public function handle(StoreCustomer $query): int
            {
                return 7;
            }
        }, '::handle() has an invalid #[Weft\\Bus\\QueryHandler]: '];
        yield 'an unknown argument' => [new class {
            #[EventListener(priority: 10)]
            public function handle(CustomerStored $event): void {}
        }, '::handle() has an invalid #[Weft\\Bus\\EventListener]: Unknown named parameter $priority. Its arguments are types'];
        yield 'an argument too many' => [new class {
            #[EventListener('shop.*', 10)]
            public function handle(CustomerStored $event): void {}
        }, '::handle() has an invalid #[Weft\\Bus\\EventListener]: it has 2 arguments. Its arguments are types'];
        yield 'a repeated attribute' => [new class {
            #[CommandHandler, CommandHandler]
            public function handle(StoreCustomer $command): void {}
        }, '::handle() has an invalid #[Weft\\Bus\\CommandHandler]: Attribute "Weft\\Bus\\CommandHandler" must not be repeated'];
        yield 'an attribute of a class on a method' => [new class {
            #[CommandHandler, MessageType('customer.store')]
            public function handle(StoreCustomer $command): void {}
        }, '::handle() has an invalid #[Weft\\Bus\\MessageType]: Attribute "Weft\\Bus\\MessageType" cannot target method'];
    }

    public function testADsnOfAnotherSchemeIsRefusedAsThatOfADatabaseIs(): void
    {
        foreach (['kafka://user:secret@localhost' => 'got kafka:', 'secret' => 'got one without a scheme', 'kafka' => 'without a scheme'] as $dsn => $problem) {
            try {
                Bus::connect($dsn);
                self::fail("$dsn was taken");
            } catch (InvalidDsnError $error) {
                self::assertStringEndsWith($problem, $error->getMessage());
            }
        }
    }

    public function testAMessageThatJsonCannotCarryIsRefusedWithItsHandler(): void
    {
        $this->expectException(InvalidMessageClassError::class);
        $this->expectExceptionMessage('ArrayObject');

        Bus::connect('memory:')->handlers(new class {
            #[CommandHandler]
            public function handle(\ArrayObject $command): void {}
        });
    }

    public function testAttributesOfOthersThatAreNotInstalledAreLeftAlone(): void
    {
        $bus = Bus::connect('memory:')->handlers(new #[\JetBrains\PhpStorm\Immutable] class {
            #[CommandHandler, \Vendor\Timeout, Description('stores')]
            public function handle(StoreCustomer $command): void {}
        });

        self::assertNotSame([], $bus->queue(self::QUEUE)->plan());
    }

    public function testAClassNameIsProvidedByTheContainerAndWithoutOneRefused(): void
    {
        $handled = [];
        $handler = self::storing(static function (StoreCustomer $command) use (&$handled): void {
            $handled[] = $command->id;
        });
        $container = new class ($handler) implements ContainerInterface {
            public function __construct(private readonly object $handler) {}

            public function get(string $id): object
            {
                return $this->handler;
            }

            public function has(string $id): bool
            {
                return $id === $this->handler::class;
            }
        };
        $this->inRuntime(function () use ($container, $handler, &$handled): void {
            $bus = Bus::connect('memory:', options: new BusOptions(container: $container))->handlers($handler::class);
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(7));
            self::drain($bus);
            self::assertSame(['7'], $handled);
        });

        $this->expectException(InvalidHandlerError::class);
        $this->expectExceptionMessage('is not marked with #[Saga], and no container provides it; register handlers as objects, sagas by class name');
        Bus::connect('memory:')->handlers($handler::class);
    }

    public function testAListenerOfAnInterfaceABaseClassOrAPatternHearsEveryKnownEventThatFitsOnce(): void
    {
        $this->inRuntime(function (): void {
            $heard = [];
            $listener = new class (static function (string $how, object $event) use (&$heard): void {
                $heard[$event::class][] = $how;
            }) {
                public function __construct(private readonly \Closure $note) {}

                #[EventListener]
                public function byInterface(Shipping $event): void
                {
                    ($this->note)('interface', $event);
                }

                #[EventListener]
                public function byBase(ParcelEvent $event): void
                {
                    ($this->note)('base', $event);
                }

                #[EventListener(types: 'parcel.*')]
                public function byPattern(object $event): void
                {
                    ($this->note)('pattern', $event);
                }

                #[EventListener(types: 'parcel.*')]
                public function byBoth(Shipping $event): void
                {
                    ($this->note)('both', $event);
                }

                #[EventListener]
                public function bySeveral(ParcelLost|CustomerStored|Shipping $event): void
                {
                    ($this->note)('several', $event);
                }
            };
            $bus = Bus::connect('memory:', options: new BusOptions(messages: new MessageOptions([ParcelLost::class, ParcelFound::class, ShipLeft::class])))->handlers($listener);
            $bus->queue(self::QUEUE)->declare();
            foreach ([new ParcelLost('1'), new ParcelFound('2'), new ShipLeft('3'), new CustomerStored('4')] as $event) {
                $bus->publish($event);
            }
            self::drain($bus);

            self::assertEqualsCanonicalizing(['interface', 'base', 'pattern', 'both', 'several'], $heard[ParcelLost::class]);
            self::assertEqualsCanonicalizing(['base', 'pattern'], $heard[ParcelFound::class]);
            self::assertEqualsCanonicalizing(['interface', 'several'], $heard[ShipLeft::class]);
            self::assertSame(['several'], $heard[CustomerStored::class]);
        });
    }

    public function testAClassThatBecomesKnownLaterIsHeardToo(): void
    {
        $this->inRuntime(function (): void {
            $heard = [];
            $wide = new class (static function (object $event) use (&$heard): void {
                $heard[] = $event::class;
            }) {
                public function __construct(private readonly \Closure $note) {}

                #[EventListener(types: '*')]
                public function all(object $event): void
                {
                    ($this->note)($event);
                }
            };
            $bus = Bus::connect('memory:', options: new BusOptions(messages: new MessageOptions([StoreCustomer::class])))->handlers($wide);
            $bus->queue(self::QUEUE)->declare();
            // A command has one handler, whatever a pattern says.
            $bus->handlers(self::storing(static fn() => null), self::listening(static fn() => null));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            $bus->publish(new CustomerStored('1'));
            self::drain($bus);

            self::assertSame([CustomerStored::class], $heard);
            self::assertSame(1, $bus->admin()->stats()->commands);
        });
    }

    public function testOneHandlerTakesSeveralCommands(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $bus = Bus::connect('memory:')->handlers(new class (static function (object $command) use (&$seen): void {
                $seen[] = $command::class;
            }) {
                public function __construct(private readonly \Closure $note) {}

                #[CommandHandler]
                public function both(StoreCustomer|ForgetCustomer $command): void
                {
                    ($this->note)($command);
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            $bus->send(new ForgetCustomer('1'));
            self::drain($bus);

            self::assertSame([StoreCustomer::class, ForgetCustomer::class], $seen);
        });
    }

    public function testAListenerThatNoKnownClassFitsIsReported(): void
    {
        $this->inRuntime(function (): void {
            $logger = new RecordingLogger();
            $listener = new class {
                #[EventListener]
                public function shipping(Shipping $event): void {}
            };
            $bus = Bus::connect('memory:', options: new BusOptions(logger: $logger))->handlers($listener);
            self::drain($bus);

            self::assertTrue($logger->has('listens to ' . Shipping::class . ', and no known message class fits'), \implode("\n", $logger->lines));
        });
    }

    public function testSeveralCommandsCannotHaveAHandlerEachAndOneTogether(): void
    {
        $together = new class {
            #[CommandHandler]
            public function both(StoreCustomer|ForgetCustomer $command): void {}
        };

        $this->expectException(DuplicateHandlerError::class);
        $this->expectExceptionMessage('Command ' . StoreCustomer::class . ' has two handlers');
        Bus::connect('memory:')->handlers($together, self::storing(static fn() => null));
    }

    public function testAnEventListenerForAClassThatACommandHandlerTakesIsRefused(): void
    {
        $listener = new class {
            #[EventListener]
            public function on(CustomerStored|StoreCustomer $event): void {}
        };

        $this->expectException(DuplicateHandlerError::class);
        Bus::connect('memory:')->handlers(self::storing(static fn() => null), $listener);
    }

    public function testParametersAreFoundByTypeInAnyOrder(): void
    {
        $this->inRuntime(function (): void {
            $logger = new RecordingLogger();
            $service = new \ArrayObject(['a service']);
            $container = new class ($service) implements ContainerInterface {
                public function __construct(private readonly object $service) {}

                public function get(string $id): object
                {
                    return $this->service;
                }

                public function has(string $id): bool
                {
                    return $id === \ArrayObject::class;
                }
            };
            $handler = new class {
                public array $got = [];

                #[CommandHandler]
                public function handle(
                    StoreCustomer $command,
                    \ArrayObject $service,
                    Transaction $transaction,
                    LoggerInterface $logger,
                    Context $context,
                    Database $database,
                    ?\SplStack $nothing,
                    int $number = 7,
                ): void {
                    $logger->info('handled');
                    $this->got = [$command->id, $service, $transaction->execute('SELECT 5')->value(), $context->type(), $database->driver()->name, $nothing, $number];
                }
            };
            $database = Database::connect('sqlite::memory:');
            $bus = Bus::connect('memory:', $database, new BusOptions(container: $container, logger: $logger))->handlers($handler);
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(3));
            self::drain($bus);
            $database->close();

            self::assertSame(['3', $service, 5, StoreCustomer::class, 'Sqlite', null, 7], $handler->got);
            self::assertSame(['info handled'], $logger->lines);
        });
    }

    /** @dataProvider shortSignatures */
    #[DataProvider('shortSignatures')]
    public function testShortSignaturesGetWhatTheyAskFor(object $handler, array $expected): void
    {
        $this->inRuntime(function () use ($handler, $expected): void {
            $database = Database::connect('sqlite::memory:');
            $bus = Bus::connect('memory:', $database)->handlers($handler);
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(3));
            self::drain($bus);
            $database->close();

            self::assertSame($expected, \array_map('get_debug_type', $handler->got));
        });
    }

    public static function shortSignatures(): iterable
    {
        yield 'message' => [new class {
            public array $got;

            #[CommandHandler]
            public function handle(StoreCustomer $command): void
            {
                $this->got = \func_get_args();
            }
        }, [StoreCustomer::class]];
        yield 'context' => [new class {
            public array $got;

            #[CommandHandler]
            public function handle(StoreCustomer $command, Context $context): void
            {
                $this->got = \func_get_args();
            }
        }, [StoreCustomer::class, Context::class]];
        yield 'transaction' => [new class {
            public array $got;

            #[CommandHandler]
            public function handle(StoreCustomer $command, Transaction $transaction): void
            {
                $this->got = \func_get_args();
            }
        }, [StoreCustomer::class, Transaction::class]];
        yield 'both' => [new class {
            public array $got;

            #[CommandHandler]
            public function handle(StoreCustomer $command, Context $context, Transaction $transaction): void
            {
                $this->got = \func_get_args();
            }
        }, [StoreCustomer::class, Context::class, Transaction::class]];
        yield 'both, turned around' => [new class {
            public array $got;

            #[CommandHandler]
            public function handle(StoreCustomer $command, Transaction $transaction, Context $context): void
            {
                $this->got = \func_get_args();
            }
        }, [StoreCustomer::class, Transaction::class, Context::class]];
    }
}

interface Shipping {}

abstract class ParcelEvent
{
    public function __construct(public readonly string $id) {}
}

#[MessageType('parcel.lost')]
final class ParcelLost extends ParcelEvent implements Shipping {}

#[MessageType('parcel.found')]
final class ParcelFound extends ParcelEvent {}

final class ShipLeft implements Shipping
{
    public function __construct(public readonly string $id) {}
}
