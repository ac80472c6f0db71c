<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Saga;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\DeadLetter;
use Weft\Bus\DeadLetterFilter;
use Weft\Bus\EventListener;
use Weft\Bus\Retry;
use Weft\Bus\Saga\SagaContext;
use Weft\Bus\Saga\SagaEnded;
use Weft\Bus\Saga\SagaExistsException;
use Weft\Bus\Saga\SagaNotCorrelatedException;
use Weft\Bus\Saga\SagaNotEndedException;
use Weft\Bus\Saga\SagaNotFoundException;
use Weft\Bus\Saga\SagaNotStartedException;
use Weft\Bus\Saga\SagaAlreadyEndedException;
use Weft\Bus\Saga\SagaReopened;
use Weft\Bus\Saga\SagaStarted;
use Weft\Bus\Saga\SagaStatus;
use Weft\Bus\Transport\Memory;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Tests\Bus\BusTestCase;
use Weft\Tests\Bus\Saga\Fixtures\Checkout;
use Weft\Tests\Bus\Saga\Fixtures\OrderCancelled;
use Weft\Tests\Bus\Saga\Fixtures\OrderNoted;
use Weft\Tests\Bus\Saga\Fixtures\OrderPlaced;
use Weft\Tests\Bus\Saga\Fixtures\ParcelDelivered;
use Weft\Tests\Bus\Saga\Fixtures\PaymentLate;
use Weft\Tests\Bus\Saga\Fixtures\PaymentReceived;
use Weft\Tests\Bus\Saga\Fixtures\Sent;
use Weft\Tests\Bus\Saga\Fixtures\Ship;
use Weft\Tests\Sql\Support\Databases;

use function Weft\async;
use function Weft\delay;

require_once __DIR__ . '/Fixtures/checkout.php';

/** One saga at a time, on each database. */
final class SagaTest extends BusTestCase
{
    use Databases;

    /** @var list<string> what others heard */
    private array $heard = [];

    /** @var list<SagaEnded|SagaReopened> */
    private array $changes = [];

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testASagaIsStartedCarriedOnAndCompleted(string $kind): void
    {
        $this->with($kind, function (Bus $bus) use ($kind): void {
            $bus->publish(new OrderPlaced('1', total: 20));
            self::drain($bus);
            self::assertSame(SagaStatus::Active, $bus->admin()->sagas()->find('checkout', '1')?->status);
            $bus->publish(new PaymentReceived('1', 10));
            self::drain($bus);
            self::assertSame([], $this->heardOf('ship'));
            $bus->publish(new PaymentReceived('1', 10));
            self::drain($bus);
            self::assertSame(['ship 1'], $this->heardOf('ship'));
            $bus->publish(new ParcelDelivered('parcel of 1'));
            self::drain($bus);

            $saga = $bus->admin()->sagas()->find(Checkout::class, '1');
            self::assertNotNull($saga);
            self::assertSame([SagaStatus::Completed, 'delivered', 4], [$saga->status, $saga->reason, $saga->version]);
            self::assertEqualsWithDelta(\time(), $saga->endedAt?->getTimestamp(), 5);
            self::assertSame('{"total":20,"paid":20,"late":null,"reminders":0,"seen":[]}', $saga->state);
            self::assertSame(['started 1', 'ended 1 completed delivered'], $this->heardOf('started', 'ended'));
            self::assertSame(0, $bus->admin()->backlog()['delayed'], 'its time-out is taken back');
            self::assertSame(0, $bus->queue(self::QUEUE)->deadLetters()->count());
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAMethodThatThrowsLeavesTheSagaAsItWasAndSendsNothing(string $kind): void
    {
        $this->with($kind, function (Bus $bus) use ($kind): void {
            $bus->publish(new OrderPlaced('1'));
            self::drain($bus);
            $before = $bus->admin()->sagas()->find('checkout', '1');
            $bus->publish(new OrderCancelled('1', broken: true));
            self::drain($bus);

            self::assertEquals($before, $bus->admin()->sagas()->find('checkout', '1'));
            self::assertSame([], $this->heardOf('sent'));
            self::assertSame([\DomainException::class], self::errors($bus));
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testATimeoutFindsItsSagaAndMayStartAnother(string $kind): void
    {
        $this->with($kind, function (Bus $bus) use ($kind): void {
            $consumer = async(static fn() => $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
            $bus->publish(new OrderPlaced('1', late: 0.25));
            $bus->publish(new OrderPlaced('2', late: 45.0));
            self::until(static fn(): bool => $bus->admin()->sagas()->find('checkout', '2')?->status === SagaStatus::Active);
            $bus->publish(new PaymentReceived('2'));
            self::until(static fn(): bool => $bus->admin()->sagas()->find('checkout', '1')?->status === SagaStatus::Failed);
            $bus->stop();
            $consumer->await();

            $state = $bus->admin()->sagas()->state(Checkout::class, '1');
            \assert($state instanceof Checkout);
            self::assertSame([3, 'not paid'], [$state->reminders, $bus->admin()->sagas()->find('checkout', '1')->reason]);
            self::assertSame(SagaStatus::Active, $bus->admin()->sagas()->find('checkout', '2')?->status, 'it was paid, its time-out was taken back');
            self::assertSame(0, $bus->queue(self::QUEUE)->deadLetters()->count());
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testMessagesThatNoSagaCanTakeAreAnsweredAsTheSagaSays(string $kind): void
    {
        $this->with($kind, function (Bus $bus) use ($kind): void {
            $bus->publish(new PaymentReceived('missing'));
            $bus->publish(new OrderCancelled('missing, ignored'));
            $bus->publish(new OrderNoted('missing, tried again'));
            $bus->publish(new OrderPlaced('1'));
            self::drain($bus);
            self::assertSame([SagaNotFoundException::class, SagaNotStartedException::class], self::errors($bus));
            self::assertSame(2, $this->attemptsOf($bus, SagaNotStartedException::class));
            self::assertSame(1, $this->attemptsOf($bus, SagaNotFoundException::class));
            $bus->queue(self::QUEUE)->deadLetters()->delete(new DeadLetterFilter());

            $bus->publish(new OrderPlaced('1'));
            self::drain($bus);
            self::assertSame([SagaExistsException::class], self::errors($bus));
            $bus->queue(self::QUEUE)->deadLetters()->delete(new DeadLetterFilter());

            $bus->publish(new OrderCancelled('1'));
            self::drain($bus);
            self::assertSame(SagaStatus::Failed, $bus->admin()->sagas()->find('checkout', '1')?->status);
            $bus->publish(new PaymentReceived('1'));
            $bus->send(new PaymentLate(1));
            self::drain($bus);
            self::assertSame([SagaNotCorrelatedException::class], self::errors($bus), 'a time-out nobody asked for; the payment is ignored');
            $bus->queue(self::QUEUE)->deadLetters()->delete(new DeadLetterFilter());

            $bus->publish(new OrderPlaced('old'));
            self::drain($bus);
            $this->database($kind)->execute("UPDATE weft_sagas SET expires_at = started_at WHERE id = 'old'");
            self::assertSame(SagaStatus::Expired, $bus->admin()->sagas()->find('checkout', 'old')?->status);
            $bus->publish(new PaymentReceived('old'));
            self::drain($bus);
            self::assertSame([SagaAlreadyEndedException::class], self::errors($bus));
            self::assertStringContainsString('Saga checkout "old" has expired', $bus->queue(self::QUEUE)->deadLetters()->peek()[0]->headers['weft-error-message']);
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testASagaThatHasEndedIsReopenedAndOneThatIsOpenIsNot(string $kind): void
    {
        $this->with($kind, function (Bus $bus) use ($kind): void {
            $bus->publish(new OrderPlaced('1'));
            self::drain($bus);
            try {
                $bus->admin()->sagas()->reopen(Checkout::class, '1');
                self::fail('reopened');
            } catch (SagaNotEndedException $open) {
                self::assertStringContainsString('checkout "1" is active', $open->getMessage());
            }
            $bus->publish(new OrderCancelled('1'));
            self::drain($bus);
            $bus->admin()->sagas()->reopen(Checkout::class, '1', expires: 60.0);
            $saga = $bus->admin()->sagas()->find('checkout', '1');
            self::assertSame([SagaStatus::Reopened, null, ''], [$saga?->status, $saga->endedAt, $saga->reason]);
            self::assertEqualsWithDelta(\time() + 60, $saga->expiresAt?->getTimestamp(), 5);
            $bus->publish(new PaymentReceived('1'));
            self::drain($bus);

            self::assertSame(['ship 1'], $this->heardOf('ship'));
            self::assertSame(['started 1', 'ended 1 failed cancelled', 'reopened 1'], $this->heardOf('started', 'ended', 'reopened'));
            $this->expectException(SagaNotFoundException::class);
            $bus->admin()->sagas()->reopen('checkout', 'nobody');
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAnExpiryIsPublishedOnceWithThePreviousStatus(string $kind): void
    {
        $this->with($kind, function (Bus $bus) use ($kind): void {
            $bus->publish(new OrderPlaced('1'));
            $bus->publish(new OrderPlaced('2'));
            self::drain($bus);
            $this->database($kind)->execute("UPDATE weft_sagas SET expires_at = started_at WHERE id = '1'");
            self::until(function () use ($bus): bool {
                self::drain($bus);

                return $this->heardOf('ended') !== [];
            });
            self::assertEquals([new SagaEnded('checkout', '1', SagaStatus::Expired, '', SagaStatus::Active)], $this->changes);
            $saga = $bus->admin()->sagas()->find('checkout', '1');
            self::assertSame([SagaStatus::Expired, $saga?->expiresAt?->format('U.v')], [$saga?->status, $saga?->endedAt?->format('U.v')]);
            self::assertSame(['1'], \array_column($bus->admin()->sagas()->list('checkout', SagaStatus::Expired), 'id'));

            $bus->admin()->sagas()->reopen(Checkout::class, '1', expires: \INF, reason: 'paid by cheque');
            self::drain($bus);
            self::assertEquals(new SagaReopened('checkout', '1', 'paid by cheque', SagaStatus::Expired), $this->changes[1] ?? null);
            $saga = $bus->admin()->sagas()->find('checkout', '1');
            self::assertSame([SagaStatus::Reopened, null, 'paid by cheque'], [$saga?->status, $saga?->expiresAt, $saga?->reason]);
            $bus->publish(new OrderCancelled('1'));
            self::drain($bus);
            self::assertEquals(new SagaEnded('checkout', '1', SagaStatus::Failed, 'cancelled', SagaStatus::Reopened), $this->changes[2] ?? null);
            self::assertCount(3, $this->changes);
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testASagaIsReopenedInATransactionAndNotWhenThatIsRolledBack(string $kind): void
    {
        $this->with($kind, function (Bus $bus) use ($kind): void {
            $bus->publish(new OrderPlaced('1'));
            self::drain($bus);
            $bus->publish(new OrderCancelled('1'));
            self::drain($bus);
            try {
                $this->database($kind)->transaction(static function (Transaction $transaction) use ($bus): void {
                    $bus->admin()->sagas()->reopen(Checkout::class, '1', transaction: $transaction);
                    throw new \DomainException('no');
                });
            } catch (\DomainException) {
            }
            self::drain($bus);
            self::assertSame([SagaStatus::Failed, []], [$bus->admin()->sagas()->find('checkout', '1')?->status, $this->heardOf('reopened')]);
            $this->database($kind)->transaction(function (Transaction $transaction) use ($bus): void {
                $bus->admin()->sagas()->reopen(Checkout::class, '1', transaction: $transaction);
                self::assertSame(0, $bus->queue(self::QUEUE)->depth(), 'the transaction may still be rolled back');
            });
            self::assertSame(SagaStatus::Reopened, $bus->admin()->sagas()->find('checkout', '1')?->status);
            self::until(function () use ($bus): bool {
                self::drain($bus);

                return $this->heardOf('reopened') === ['reopened 1'];
            });
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testSagasAreListedAndForgotten(string $kind): void
    {
        $this->with($kind, function (Bus $bus) use ($kind): void {
            foreach (['1', '2', '3'] as $id) {
                $bus->publish(new OrderPlaced($id));
                self::drain($bus);
            }
            $bus->publish(new PaymentReceived('2'));
            self::drain($bus);
            $bus->publish(new ParcelDelivered('parcel of 2'));
            self::drain($bus);
            $ids = static fn(?SagaStatus $status): array => \array_column($bus->admin()->sagas()->list('checkout', $status), 'id');

            self::assertSame([['3', '2', '1'], ['3', '1'], ['2'], []], \array_map($ids, [null, SagaStatus::Active, SagaStatus::Completed, SagaStatus::Expired]));
            self::assertSame(['3', '2'], \array_column($bus->admin()->sagas()->list(limit: 2), 'id'));
            self::assertSame([], $bus->admin()->sagas()->list('another'));
            self::assertSame(0, $bus->admin()->sagas()->prune(before: 3600.0));
            delay(0.01);
            self::assertSame(1, $bus->admin()->sagas()->prune(before: 0.0));
            self::assertSame(['3', '1'], $ids(null));
            self::assertSame(0, $this->database($kind)->execute('SELECT count(*) FROM weft_saga_associations')->value());
            $bus->publish(new ParcelDelivered('parcel of 2'));
            self::drain($bus);
            self::assertSame([SagaNotFoundException::class], self::errors($bus));
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testIdsDifferByEveryByteAndAnEmptyOneIsDeadLettered(string $kind): void
    {
        $this->with($kind, function (Bus $bus) use ($kind): void {
            foreach (['a', 'A', 'a ', 'ä', '💥', \str_repeat('x', 200)] as $id) {
                $bus->publish(new OrderPlaced($id));
            }
            self::drain($bus);
            self::assertSame([6, 0], [\count($bus->admin()->sagas()->list()), $bus->queue(self::QUEUE)->deadLetters()->count()]);
            foreach (['', \str_repeat('x', 201), "a\0b"] as $none) {
                $bus->publish(new OrderPlaced($none));
            }
            $bus->publish(new OrderCancelled(null));
            self::drain($bus);

            self::assertSame(\array_fill(0, 4, SagaNotCorrelatedException::class), self::errors($bus));
            self::assertCount(6, $bus->admin()->sagas()->list());
        });
    }

    /** @param \Closure(Bus): void $test */
    private function with(string $kind, \Closure $test): void
    {
        $this->inRuntime(function () use ($kind, $test): void {
            $bus = Bus::connect(new Memory(), $this->database($kind), new BusOptions(retry: new Retry(immediate: 1)));
            $bus->handlers(Checkout::class, $this->others());
            $bus->queue(self::QUEUE)->declare();
            $test($bus);
            $bus->close();
        });
    }

    private function others(): object
    {
        return new class ($this->heard, $this->changes) {
            /**
             * @param list<string>                 $heard
             * @param list<SagaEnded|SagaReopened> $changes
             */
            public function __construct(private array &$heard, private array &$changes) {}

            #[CommandHandler]
            public function ship(Ship $command): void
            {
                $this->heard[] = "ship {$command->orderId}";
            }

            #[EventListener]
            public function sent(Sent $event): void
            {
                $this->heard[] = "sent {$event->what}";
            }

            #[EventListener]
            public function started(SagaStarted $event): void
            {
                $this->heard[] = "started {$event->id}";
            }

            #[EventListener]
            public function ended(SagaEnded $event): void
            {
                $this->heard[] = "ended {$event->id} {$event->status->value} {$event->reason}";
                $this->changes[] = $event;
            }

            #[EventListener]
            public function reopened(SagaReopened $event): void
            {
                $this->heard[] = "reopened {$event->id}";
                $this->changes[] = $event;
            }
        };
    }

    /** @return list<string> */
    private function heardOf(string ...$words): array
    {
        return \array_values(\array_filter($this->heard, static fn(string $line): bool => \in_array(\strtok($line, ' '), $words, true)));
    }

    /** @return list<string> classes, in alphabetical order */
    private static function errors(Bus $bus): array
    {
        $errors = \array_map(static fn(DeadLetter $letter): string => $letter->headers['weft-error-class'], $bus->queue(self::QUEUE)->deadLetters()->peek());
        \sort($errors);

        return $errors;
    }

    private function attemptsOf(Bus $bus, string $error): int
    {
        foreach ($bus->queue(self::QUEUE)->deadLetters()->peek() as $letter) {
            if ($letter->headers['weft-error-class'] === $error) {
                return (int) $letter->headers['weft-attempts'];
            }
        }

        return 0;
    }

    private static function until(\Closure $condition): void
    {
        while (!$condition()) {
            delay(0.01);
        }
    }
}
