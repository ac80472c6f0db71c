<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\Context;
use Weft\Bus\EventListener;
use Weft\Bus\Header;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\MessageOptions;
use Weft\Bus\MessageType;
use Weft\Bus\NoHandlerException;
use Weft\Bus\PublishException;
use Weft\Bus\Retry;
use Weft\Bus\Route;
use Weft\Bus\SendOptions;
use Weft\Bus\SerializedBy;
use Weft\Bus\Serializer;
use Weft\Bus\Serializer\CloudEvents;
use Weft\CloudEvents\ContentMode;
use Weft\Bus\Serializer\HeaderMapping;
use Weft\Bus\Serializer\Json;
use Weft\Bus\Serializer\PhpServiceBus;
use Weft\Bus\Serializer\RawBytes;
use Weft\Bus\Serializer\SymfonyMessenger;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\RabbitMqQueue;
use Weft\Bus\TransportException;
use Weft\Bus\UndefinedQueueException;
use Weft\Bus\UnroutableMessageException;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Bus\Fixtures\StoreCustomer;

use function Weft\async;
use function Weft\delay;

/** Programs of other languages and libraries, with exchanges and queues that they have declared. */
final class ForeignProgramsTest extends BusTestCase
{
    use Servers;

    private const PROGRAMS = __DIR__ . '/Foreign';

    public function testAGoProgramAndABusReadEachOther(): void
    {
        $go = self::client('go');
        $this->program($go, 'declare');
        $this->program($go, 'produce');
        $this->inRuntime(function () use ($go): void {
            $seen = null;
            $bus = $this->bus('warehouse.orders', self::options(
                queues: ['warehouse.orders' => new HeaderMapping(new Json(), 'event_name', ['order_placed' => WarehouseOrder::class], [Header::CORRELATION_ID => 'x-request'])],
                serializers: [ParcelReady::class => new HeaderMapping(new Json(), 'event_name', ['parcel_ready' => ParcelReady::class])],
                routes: [ParcelReady::class => new Route('warehouse', static fn(ParcelReady $event): string => "parcel.{$event->country}", ['tenant' => 't-1'])],
            ), new class (static function (WarehouseOrder $order, Context $context) use (&$seen): void {
                $seen = [$order->id, $order->total, $context->messageId(), $context->correlationId(), $context->header('attempt')];
                $context->publish(new ParcelReady($order->id, 'nl'));
            }) {
                public function __construct(private readonly \Closure $handle) {}

                #[EventListener]
                public function placed(WarehouseOrder $order, Context $context): void
                {
                    ($this->handle)($order, $context);
                }
            });
            $bus->consume('warehouse.orders', options: new ConsumeOptions(stopWhenEmpty: true));

            self::assertSame(['go-1', 12.5, 'go-message-1', 'r-7', '3'], $seen);
            $received = $this->decoded($go, 'consume');
            self::assertSame(['warehouse', 'parcel.nl', 'parcel_ready', 'application/json'], [$received['exchange'], $received['key'], $received['type'], $received['contentType']]);
            self::assertSame(['parcel_ready', 't-1'], [$received['headers']['event_name'], $received['headers']['tenant']]);
            self::assertSame('{"order":"go-1","country":"nl"}', $received['body']);
        });
    }

    public function testAPythonProgramAndABusReadEachOthersCloudEvents(): void
    {
        $python = [self::client('pika'), self::PROGRAMS . '/program.py'];
        $this->program(...[...$python, 'declare']);
        $this->program(...[...$python, 'produce']);
        $this->inRuntime(function () use ($python): void {
            $seen = [];
            $bus = $this->bus('ledger.entries', self::options(queues: ['ledger.entries' => new CloudEvents('/shop')]), new class (static function (EntryBooked $entry, Context $context) use (&$seen): void {
                $seen[] = [$entry->account, $entry->cents, $context->messageId()];
                $seen === [] || $context->publish(new InvoiceDue($entry->account));
            }) {
                public function __construct(private readonly \Closure $handle) {}

                #[EventListener]
                public function booked(EntryBooked $entry, Context $context): void
                {
                    ($this->handle)($entry, $context);
                }
            });
            $bus->consume('ledger.entries', concurrency: 1, options: new ConsumeOptions(stopWhenEmpty: true));

            self::assertSame([['4711', -250, '/ledger 17'], ['4711', -250, '/ledger 18']], $seen);
            $received = $this->decoded(...[...$python, 'consume']);
            $event = \json_decode($received['body'], true);
            self::assertSame(['ledger', 'invoice', 'application/cloudevents+json; charset=UTF-8'], [$received['exchange'], $received['key'], $received['contentType']]);
            self::assertSame(['1.0', '/shop', 'ledger.invoice.due', ['account' => '4711']], [$event['specversion'], $event['source'], $event['type'], $event['data']]);
        });
    }

    public function testAProgramWithPhpAmqplibAndABusReadEachOther(): void
    {
        self::needs('PhpAmqpLib/autoload.php', 'php-amqplib');
        $php = [\PHP_BINARY, self::PROGRAMS . '/amqplib.php'];
        $this->program(...[...$php, 'declare']);
        $this->program(...[...$php, 'produce']);
        $this->inRuntime(function () use ($php): void {
            $seen = null;
            $bus = $this->bus('old.commands', self::options(queues: ['old.commands' => new PhpServiceBus(['App\StoreCustomerCommand' => StoreCustomer::class])]), self::storing(static function (StoreCustomer $command, Context $context) use (&$seen): void {
                $seen = [$command->id, $command->name, $context->trace()->traceId()];
                $context->publish(new ImageMade("\x89PNG\xFF"));
            }));
            $bus->consume('old.commands', options: new ConsumeOptions(stopWhenEmpty: true));

            self::assertSame(['c-1', 'Zoë', '0af7651916cd43dd8448eb211c80319c'], $seen);
            $letters = $bus->queue('old.commands')->deadLetters()->peek();
            self::assertSame(['not a message'], \array_column($letters, 'body'), 'what nobody can read is parked');
            $received = $this->decoded(...[...$php, 'consume']);
            self::assertSame(['old.application', 'images', 'image/png', \base64_encode("\x89PNG\xFF")], [$received['exchange'], $received['key'], $received['contentType'], $received['body']]);
        });
    }

    public function testSymfonyMessengerAndABusReadEachOther(): void
    {
        self::needs('Symfony/Component/Messenger/Bridge/Amqp/autoload.php', 'php-symfony-amqp-messenger');
        \extension_loaded('amqp') || self::markTestSkipped('php-amqp is not installed: scripts/setup test');
        $php = [\PHP_BINARY, self::PROGRAMS . '/messenger.php'];
        $this->program(...[...$php, 'produce']);
        $this->inRuntime(function () use ($php): void {
            $seen = null;
            $format = new SymfonyMessenger(['App\Message\PlaceOrder' => PlaceOrder::class], bus: 'event.bus');
            $bus = $this->bus('shop.in', self::options(
                ['shop.in' => $format],
                [PlaceOrder::class => $format],
                [PlaceOrder::class => new Route('shop', 'orders.out')],
            ), new class (static function (PlaceOrder $order, Context $context) use (&$seen): void {
                $seen = [$order->id, $order->quantity, $order->at?->format(\DATE_ATOM), $context->header('X-Message-Stamp-Symfony\Component\Messenger\Stamp\BusNameStamp')];
                $context->send(new PlaceOrder('weft-1', 4, $order->at));
            }) {
                public function __construct(private readonly \Closure $handle) {}

                #[CommandHandler]
                public function place(PlaceOrder $order, Context $context): void
                {
                    ($this->handle)($order, $context);
                }
            });
            $bus->consume('shop.in', options: new ConsumeOptions(stopWhenEmpty: true));

            self::assertSame(['symfony-1', 3, '2026-03-04T05:06:07+00:00', '[{"busName":"command.bus"}]'], $seen);
            self::assertSame(
                ['class' => 'App\Message\PlaceOrder', 'id' => 'weft-1', 'quantity' => 4, 'at' => '2026-03-04T05:06:07+00:00', 'bus' => 'event.bus'],
                $this->decoded(...[...$php, 'consume']),
            );
        });
    }

    public function testAnExistingQueueIsNeitherDeclaredNorBound(): void
    {
        $this->inRuntime(function (): void {
            $theirs = \Weft\Amqp\Connection::connect($this->brokerDsn());
            $theirs->declare(new \Weft\Amqp\Queue('theirs', arguments: ['x-max-length' => 10]));
            $failures = 1;
            $seen = [];
            $bus = $this->bus('theirs', self::options(), new class (static function (EntryBooked $entry) use (&$failures, &$seen): void {
                $failures-- > 0 && throw new \RuntimeException('once');
                $seen[] = $entry->account;
            }) {
                public function __construct(private readonly \Closure $handle) {}

                #[EventListener]
                #[Retry(delayed: 1, delay: 0.01)]
                public function booked(EntryBooked $entry): void
                {
                    ($this->handle)($entry);
                }
            });
            self::assertSame(['queue theirs.dead', 'queue weft.retry.theirs'], $bus->queue('theirs')->plan());
            $bus->queue('theirs')->declare();
            $bus->publish(new EntryBooked('not bound', 1));
            $theirs->publisher()->publish(new \Weft\Amqp\Message('{"account":"4711","cents":1}'), '', 'theirs');
            $theirs->publisher()->publish(new \Weft\Amqp\Message('{"account":"4711","cents":1}', type: 'ledger.entry.booked'), '', 'theirs');
            while ($seen === []) {
                $bus->consume('theirs', options: new ConsumeOptions(stopWhenEmpty: true));
                delay(0.01);
            }

            self::assertSame(['4711'], $seen, 'a delayed retry comes back through a queue of the bus');
            self::assertSame(0, $bus->queue('theirs')->depth());
            self::assertSame(['{"account":"4711","cents":1}'], \array_column($bus->queue('theirs')->deadLetters()->peek(), 'body'), 'the one without a type');
            $theirs->close();
        });
    }

    public function testAMissingQueueIsNamed(): void
    {
        $this->inRuntime(function (): void {
            $bus = $this->bus('theirs', self::options(), self::storing(static fn() => null));

            $this->expectException(UndefinedQueueException::class);
            $this->expectExceptionMessage('Queue "theirs" does not exist on the broker, and this bus is configured not to declare it');
            $bus->consume('theirs', options: new ConsumeOptions(stopWhenEmpty: true));
        });
    }

    public function testAQueueThatItsOwnerDeletesEndsTheConsumerAndIsNotDeclaredAgain(): void
    {
        $this->inRuntime(function (): void {
            $theirs = \Weft\Amqp\Connection::connect($this->brokerDsn());
            $theirs->declare(new \Weft\Amqp\Queue('theirs'));
            $bus = $this->bus('theirs', self::options(), self::storing(static fn() => null));
            $consuming = async(static function () use ($bus): string {
                try {
                    $bus->consume('theirs');
                } catch (TransportException $exception) {
                    return $exception->getMessage();
                }

                return '';
            });
            while ($theirs->queueState('theirs')->consumers === 0) {
                delay(0.01);
            }
            $theirs->deleteQueue('theirs');

            self::assertStringContainsString('Queue "theirs" does not exist on the broker', $consuming->await());
            $this->expectException(UndefinedQueueException::class);
            $bus->queue('theirs')->depth();
        });
    }

    public function testABusThatMustNotDeclareNeedsNoPermissionToDoSo(): void
    {
        $this->inRuntime(function (): void {
            $theirs = \Weft\Amqp\Connection::connect($this->brokerDsn());
            $theirs->declare(
                new \Weft\Amqp\Exchange('ledger', \Weft\Amqp\ExchangeKind::Direct),
                new \Weft\Amqp\Queue('theirs'),
                new \Weft\Amqp\Queue('theirs.dead'),
                \Weft\Amqp\Binding::queue('ledger', 'theirs', 'invoice'),
            );
            $this->host->permit(configure: '^$');
            $seen = [];
            $transport = RabbitMq::connect($this->brokerDsn(), declare: false);
            $bus = Bus::connect($transport)->handlers(new class (static function (InvoiceDue $due) use (&$seen): void {
                $seen[] = $due->account;
                $due->account === 'bad' && throw new \DomainException('no');
            }) {
                public function __construct(private readonly \Closure $handle) {}

                #[EventListener]
                public function due(InvoiceDue $due): void
                {
                    ($this->handle)($due);
                }
            });
            self::assertSame([], $bus->queue('theirs')->plan());
            $bus->publish(new InvoiceDue('4711'));
            $bus->publish(new InvoiceDue('bad'));
            $bus->consume('theirs', concurrency: 1, options: new ConsumeOptions(stopWhenEmpty: true));

            self::assertSame([['4711', 'bad'], 1], [$seen, $bus->queue('theirs')->deadLetters()->count()]);
            $this->host->permit();
            $theirs->close();
        });
    }

    public function testAMissingExchangeIsNamedAndOtherMessagesAreStillPublished(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect(RabbitMq::connect($this->brokerDsn()), options: self::options(routes: [StoreCustomer::class => new Route('nowhere'), InvoiceDue::class => new Route('', 'theirs')]));
            $theirs = \Weft\Amqp\Connection::connect($this->brokerDsn());
            $theirs->declare(new \Weft\Amqp\Queue('theirs'));
            try {
                $bus->send(self::customer(1));
                self::fail('the exchange does not exist');
            } catch (PublishException $exception) {
                self::assertStringContainsString("no exchange 'nowhere'", $exception->getMessage());
            }
            $bus->publish(new InvoiceDue('4711'));
            self::assertSame(1, $bus->queue('theirs')->depth());
            $theirs->close();
        });
    }

    public function testACommandThatNoQueueIsBoundToIsUnroutable(): void
    {
        $this->inRuntime(function (): void {
            $theirs = \Weft\Amqp\Connection::connect($this->brokerDsn());
            $theirs->declare(new \Weft\Amqp\Exchange('shop', \Weft\Amqp\ExchangeKind::Topic));
            $bus = Bus::connect(RabbitMq::connect($this->brokerDsn()), options: self::options(routes: ['*' => new Route('shop', 'orders.in')]));
            try {
                $bus->send(self::customer(1));
                self::fail('no queue is bound');
            } catch (UnroutableMessageException $exception) {
                self::assertStringContainsString('shop', $exception->getMessage());
            }
            $theirs->close();
        });
    }

    public function testACommandWithARouteThatHasNoHandlerIsDeadLettered(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect(RabbitMq::connect($this->brokerDsn()), options: self::options(routes: [StoreCustomer::class => new Route('', self::QUEUE)], classes: [StoreCustomer::class]))->handlers(self::listening(static fn() => null));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            self::drain($bus);

            $letters = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame([StoreCustomer::class], \array_column($letters, 'type'));
            self::assertSame(NoHandlerException::class, $letters[0]->errorClass());
            $bus->close();
        });
    }

    public function testAMessageWithARouteSurvivesOutboxAndDelay(): void
    {
        $this->inRuntime(function (): void {
            $theirs = \Weft\Amqp\Connection::connect($this->brokerDsn());
            $theirs->declare(new \Weft\Amqp\Exchange('ledger', \Weft\Amqp\ExchangeKind::Direct), new \Weft\Amqp\Queue('theirs'), \Weft\Amqp\Binding::queue('ledger', 'theirs', 'invoice'));
            $database = $this->database();
            $bus = Bus::connect(RabbitMq::connect($this->brokerDsn()), $database)->handlers(self::storing(static function (StoreCustomer $command, Context $context): void {
                $context->publish(new InvoiceDue($command->id));
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->publish(new InvoiceDue('later'), new SendOptions(delay: 0.05));
            $bus->send(self::customer(1));
            while ($bus->queue('theirs')->depth() < 2) {
                self::drain($bus);
                delay(0.01);
            }
            $bodies = [];
            $consumer = $theirs->consume('theirs');
            while (\count($bodies) < 2) {
                \array_push($bodies, ...\array_column($consumer->next(10), 'body'));
            }
            $accounts = \array_map(static fn(string $body): string => \json_decode($body, true)['data']['account'], $bodies);
            self::assertEqualsCanonicalizing(['1', 'later'], $accounts);
            $theirs->close();
            $database->close();
        });
    }

    /** A bus that consumes a queue that it has not declared. */
    private function bus(string $queue, BusOptions $options, object $handlers): Bus
    {
        return Bus::connect(RabbitMq::connect($this->brokerDsn(), queues: [$queue => RabbitMqQueue::existing()]), options: $options)->handlers($handlers);
    }

    /**
     * @param array<string, Serializer|list<Serializer>> $queues
     * @param array<string, Serializer>                  $serializers
     * @param array<string, Route>                       $routes
     * @param list<class-string>                         $classes
     */
    private static function options(array $queues = [], array $serializers = [], array $routes = [], array $classes = []): BusOptions
    {
        return new BusOptions(messages: new MessageOptions($classes, serializers: $serializers, routes: $routes, queueSerializers: $queues));
    }

    /** The installed client, or a skipped test where a registry cannot be reached. */
    private static function client(string $name): string
    {
        $path = \trim((string) \shell_exec(\escapeshellarg(\dirname(__DIR__, 2) . '/scripts/amqp-clients') . " {$name} 2>&1"));

        return \is_executable($path) ? $path : self::markTestSkipped("scripts/amqp-clients {$name}: {$path}");
    }

    private static function needs(string $file, string $package): void
    {
        \is_file("/usr/share/php/{$file}") || self::markTestSkipped("{$package} is not installed: scripts/setup test");
    }

    /** @return string what the program prints */
    private function program(string ...$command): string
    {
        $process = \proc_open(\array_values($command), [1 => ['pipe', 'w'], 2 => ['file', $errors = (string) \tempnam(\sys_get_temp_dir(), 'foreign'), 'w']], $pipes, env_vars: ['AMQP_URL' => $this->brokerDsn()] + \getenv());
        self::assertIsResource($process);
        $output = (string) \stream_get_contents($pipes[1]);
        $code = \proc_close($process);
        self::assertSame(0, $code, (string) \file_get_contents($errors));
        \unlink($errors);

        return $output;
    }

    /** @return array<string, mixed> */
    private function decoded(string ...$command): array
    {
        return (array) \json_decode($this->program(...$command), true);
    }
}

final class WarehouseOrder
{
    public function __construct(public readonly string $id, public readonly float $total) {}
}

final class ParcelReady
{
    public function __construct(public readonly string $order, public readonly string $country) {}
}

#[MessageType('ledger.entry.booked')]
final class EntryBooked
{
    public function __construct(public readonly string $account, public readonly int $cents) {}
}

#[MessageType('ledger.invoice.due')]
#[SerializedBy(new CloudEvents('/shop', ContentMode::Structured))]
#[Route('ledger', 'invoice')]
final class InvoiceDue
{
    public function __construct(public readonly string $account) {}
}

#[SerializedBy(new RawBytes('image/png'))]
#[Route('old.application', 'images')]
final class ImageMade
{
    public function __construct(public readonly string $png) {}
}

final class PlaceOrder
{
    public function __construct(public readonly string $id, public readonly int $quantity, public readonly ?\DateTimeImmutable $at = null) {}
}
