<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\FairBy;
use Weft\Bus\Header;
use Weft\Bus\InvalidMessageClassError;
use Weft\Bus\MessageOptions;
use Weft\Bus\OrderedBy;
use Weft\Bus\Priority;
use Weft\Bus\SendOptions;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Outgoing;
use Weft\Sql\Database;
use Weft\Tests\Bus\Fixtures\Deposit;
use Weft\Tests\Bus\Fixtures\SpyTransport;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;

use function Weft\delay;

require_once __DIR__ . '/Fixtures/ordered.php';

/** Priorities and fairness decide between keys, never between the messages of one. */
final class OrderedFlowTest extends BusTestCase
{
    use TemporaryDatabase;

    public function testTenantsTakeTurnsAndTheMessagesOfAKeyStayInOrder(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $bus = $this->bus($seen);
            foreach ([['ada', 'a', 1], ['ada', 'a', 2], ['ada', 'b', 3], ['ada', 'b', 4], ['ada', 'a', 5]] as [$account, $tenant, $number]) {
                $bus->send(new Invoice($account, $tenant, $number));
            }
            $bus->consume(self::QUEUE, concurrency: 4, options: new ConsumeOptions(stopWhenEmpty: true));

            self::assertSame(['ada1', 'ada2', 'ada3', 'ada4', 'ada5'], $seen);
        });
    }

    public function testATenantWithManyMessagesOfAKeyDoesNotDelayOthers(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $bus = $this->bus($seen);
            $bus->sendAll(\array_map(static fn(int $number): Invoice => new Invoice('ada', 'a', $number), \range(1, 6)));
            $bus->sendAll([new Invoice('bob', 'b', 1), new Invoice('cid', 'c', 1), new Invoice('bob', 'b', 2)]);
            $bus->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(prefetch: 20, stopWhenEmpty: true));

            self::assertSame(['ada1', 'bob1', 'cid1', 'ada2', 'bob2', 'ada3', 'ada4', 'ada5', 'ada6'], $seen);
        });
    }

    public function testTheKeysOfAClassWithPriorityComeFirst(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $bus = $this->bus($seen);
            $bus->sendAll([new Deposit('ada', 1), new Deposit('ada', 2), new Outage('x', 1), new Outage('x', 2), new Outage('y', 1)]);
            $bus->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(prefetch: 20, stopWhenEmpty: true));

            self::assertSame(['x1', 'y1', 'x2', 'ada1', 'ada2'], $seen);
        });
    }

    /** Such as one of another program. */
    public function testAnUrgentMessageDoesNotOvertakeThoseOfItsKey(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            /** @var list<Outgoing> $sent */
            $sent = [];
            $spy = new SpyTransport(new Memory());
            $bus = $this->bus($seen, $spy);
            $spy->before = static function (string $what, array $messages) use (&$sent): void {
                $what === 'publish' && \array_push($sent, ...$messages);
            };
            for ($number = 1; $number <= 5; $number++) {
                $bus->send(new Deposit('ada', $number));
            }
            $spy->before = null;
            $bus->queue(self::QUEUE)->purge();
            $bus->sendAll([new Deposit('bob', 1), new Deposit('bob', 2)]);
            foreach ($sent as $index => $message) {
                $spy->publish([new Outgoing($message->type, $message->body, $message->headers + [Header::PRIORITY => $index === 2 ? '9' : '5'])]);
            }
            $bus->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(prefetch: 20, stopWhenEmpty: true));

            self::assertSame(['ada1', 'ada2', 'ada3', 'ada4', 'ada5', 'bob1', 'bob2'], $seen);
        });
    }

    public function testAPriorityForASingleOrderedMessageIsRefused(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $bus = $this->bus($seen);
            // It is in no order.
            $bus->send(new Deposit(null, 1), new SendOptions(priority: 9));

            $this->expectException(\ValueError::class);
            $this->expectExceptionMessage('Message ' . Deposit::class . ' is sent with the priority 9, with which it would overtake earlier messages of its key "account:ada": messages of a class with #[OrderedBy] have the priority of their class');
            $bus->send(new Deposit('ada', 1), new SendOptions(priority: 9));
        });
    }

    public function testAClassWithPriorityCannotShareTheOrderOfOthers(): void
    {
        $this->expectException(InvalidMessageClassError::class);
        $this->expectExceptionMessage('#[Priority] would let its messages overtake others of the group "account": a class with a priority has an #[OrderedBy] without a group');
        Bus::connect('memory:', options: new BusOptions(messages: new MessageOptions(classes: [Transfer::class])));
    }

    /** @param list<string> $seen */
    private function bus(array &$seen, ?SpyTransport $transport = null): Bus
    {
        $bus = Bus::connect($transport ?? new Memory(), Database::connect($this->dsn()))->handlers(new class ($seen) {
            public function __construct(private array &$seen) {}

            #[CommandHandler]
            public function deposit(Deposit $command): void
            {
                delay(0.001);
                $this->seen[] = "{$command->account}{$command->number}";
            }

            #[CommandHandler]
            public function invoice(Invoice $command): void
            {
                delay(0.001);
                $this->seen[] = "{$command->account}{$command->number}";
            }

            #[CommandHandler]
            public function outage(Outage $command): void
            {
                delay(0.001);
                $this->seen[] = "{$command->device}{$command->number}";
            }
        });
        $bus->queue(self::QUEUE)->declare();

        return $bus;
    }
}

#[OrderedBy('account', group: 'account')]
#[FairBy('tenant')]
final class Invoice
{
    public function __construct(public readonly string $account, public readonly string $tenant, public readonly int $number) {}
}

#[OrderedBy('device')]
#[Priority(9)]
final class Outage
{
    public function __construct(public readonly string $device, public readonly int $number) {}
}

#[OrderedBy('account', group: 'account')]
#[Priority(9)]
final class Transfer
{
    public function __construct(public readonly string $account) {}
}
