<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Saga;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bus\Saga\SagaNotCorrelatedException;
use Weft\Bus\Saga\SagaAlreadyEndedException;
use Weft\Bus\Saga\SagaNotFoundException;
use Weft\Bus\Saga\InvalidSagaStateException;
use Weft\Bus\Saga\SagaRecord;
use Weft\Bus\Saga\SagaStatus;
use Weft\Bus\Saga\SagaValueTakenException;
use Weft\Bus\SendOptions;
use Weft\Testing\Faults;
use Weft\Testing\Simulation;
use Weft\Testing\TestBus;
use Weft\Tests\Bus\Saga\Fixtures\Answered;
use Weft\Tests\Bus\Saga\Fixtures\Asked;
use Weft\Tests\Bus\Saga\Fixtures\CityPetition;
use Weft\Tests\Bus\Saga\Fixtures\Delegation;
use Weft\Tests\Bus\Saga\Fixtures\Dossier;
use Weft\Tests\Bus\Saga\Fixtures\Conversation;
use Weft\Tests\Bus\Saga\Fixtures\Ended;
use Weft\Tests\Bus\Saga\Fixtures\Found;
use Weft\Tests\Bus\Saga\Fixtures\Opened;
use Weft\Tests\Bus\Saga\Fixtures\Shelf;
use Weft\Tests\Bus\Saga\Fixtures\StatePetition;
use Weft\Tests\Bus\Saga\Fixtures\Tagged;

require_once __DIR__ . '/Fixtures/details.php';

/** What sagas may say and be told, with the test kit. */
final class DetailsTest extends TestCase
{
    public function testASagaIsFoundByTheConversationItsMessagesBelongTo(): void
    {
        Simulation::run(static function (TestBus $bus): void {
            $bus->handlers(Conversation::class);
            $id = $bus->publish(new Asked('why'));

            $saga = $bus->bus()->admin()->sagas()->find('conversation', $id);
            self::assertSame([SagaStatus::Completed, '{"heard":["why","answer to why"]}'], [$saga?->status, $saga->state]);
            $bus->assertSent(Answered::class)->once();
        }, runs: 10, faults: new Faults(duplicate: 0.3, crash: 0.3));
    }

    public function testTheTasksOfAMethodEndBeforeTheStateOfItsSagaIsStored(): void
    {
        self::cases(static function (TestBus $bus): void {
            $bus->handlers(Delegation::class);
            $id = $bus->publish(new Asked('why'));
            $bus->publish(new Asked('nothing'));

            $saga = $bus->bus()->admin()->sagas()->find('delegation', $id);
            self::assertSame([SagaStatus::Completed, '{"heard":["why"]}'], [$saga?->status, $saga->state]);
            $bus->assertSent(Answered::class)->once();
            $bus->assertDeadLettered(Asked::class, because: \DomainException::class)->once();
        });
    }

    public function testAValueLeadsToOneOpenSagaAndToTheNextOnceThatHasEnded(): void
    {
        self::cases(static function (TestBus $bus): void {
            $bus->publish(new Opened(1));
            $bus->publish(new Opened(2));
            $bus->publish(new Opened(2));
            $bus->publish(new Tagged(1, 'red'));
            $bus->publish(new Tagged(1, 'red'));
            $bus->assertNoDeadLetters();
            $bus->publish(new Found('red'));
            $bus->publish(new Tagged(2, 'red'));
            $bus->assertDeadLettered(Tagged::class, because: SagaValueTakenException::class)->once();
            $bus->publish(new Ended(1));
            $bus->retryDeadLetters();
            $bus->assertNoDeadLetters();
            $bus->publish(new Found('red'));
            $bus->publish(new Tagged(2, 'red', off: true));
            $bus->publish(new Found('red'));

            self::assertSame(['1', '2'], $bus->database->execute('SELECT id FROM effects ORDER BY id')->column());
            $bus->assertDeadLettered(Found::class)->once();
        });
    }

    public function testAValueThatIsNotAssociatedDoesNotReachTheSagaWithThatId(): void
    {
        Simulation::run(static function (TestBus $bus): void {
            $bus->handlers(Shelf::class);
            $bus->publish(new Tagged(7, 'red'));
            $bus->publish(new Found('7'));
            $bus->assertDeadLettered(Found::class, because: SagaNotFoundException::class)->once();
            self::assertStringContainsString('Saga shelf with tag "7" was not started', $bus->bus()->queue('test')->deadLetters()->peek()[0]->errorMessage());
            $bus->publish(new Found('red'));
            $bus->publish(new Ended(7));

            $saga = $bus->bus()->admin()->sagas()->find('shelf', '7');
            self::assertSame([SagaStatus::Completed, '{"found":1}'], [$saga?->status, $saga->state]);
        });
    }

    public function testTheNameThatCarriesIdsCannotBeAssociated(): void
    {
        Simulation::run(static function (TestBus $bus): void {
            $bus->handlers(Shelf::class);
            $bus->publish(new Tagged(7, '9', off: true));
            $bus->assertDeadLettered(Tagged::class, because: \ValueError::class)->once();
            $bus->publish(new Tagged(9, 'red'));

            self::assertSame(['9'], \array_map(static fn(SagaRecord $saga): string => $saga->id, $bus->bus()->admin()->sagas()->list()));
        });
    }

    public function testASagaCancelsTheTimeoutThatItHasJustScheduled(): void
    {
        Simulation::run(static function (TestBus $bus): void {
            $bus->handlers(Shelf::class);
            $bus->publish(new Tagged(7, 'red'));
            $bus->publish(new Ended(7, twice: true));

            self::assertSame('[true,false]', $bus->bus()->admin()->sagas()->find('shelf', '7')?->reason);
            self::assertSame(0, $bus->bus()->admin()->backlog()['delayed']);
        });
    }

    public function testASagaMayDeadLetterLateMessagesAndSetItsExpiry(): void
    {
        self::cases(static function (TestBus $bus): void {
            $bus->publish(new Opened(1));
            self::assertNull($bus->bus()->admin()->sagas()->find('case', '1')?->expiresAt);
            $bus->publish(new Ended(1));
            $bus->publish(new Ended(1));
            $bus->assertDeadLettered(Ended::class, because: SagaAlreadyEndedException::class)->once();

            $bus->publish(new Opened(2));
            $bus->publish(new Ended(2, expires: '2026-01-01 01:00:00 UTC'));
            $bus->advance(3599.0);
            self::assertSame(SagaStatus::Active, $bus->bus()->admin()->sagas()->find('case', '2')?->status);
            $bus->advance(1.0);
            $saga = $bus->bus()->admin()->sagas()->find('case', '2');
            self::assertSame([SagaStatus::Expired, '2026-01-01 01:00:00'], [$saga?->status, $saga->endedAt?->format('Y-m-d H:i:s')]);
            $bus->publish(new Tagged(2, 'late'));
            $bus->assertDeadLettered(Tagged::class, because: SagaAlreadyEndedException::class)->once();
        });
    }

    /** @dataProvider expiries */
    #[DataProvider('expiries')]
    public function testAnExpiryIsReadAsItWasSet(string $expires, string $read, SagaStatus $status): void
    {
        self::cases(static function (TestBus $bus) use ($expires, $read, $status): void {
            $bus->publish(new Opened(2));
            $bus->publish(new Ended(2, expires: $expires));
            $saga = $bus->bus()->admin()->sagas()->find('case', '2');

            self::assertSame([$status, $read], [$saga?->status, $saga->expiresAt?->format('Y-m-d H:i:s.v')]);
        });
    }

    /** @return iterable<string, array{string, string, SagaStatus}> */
    public static function expiries(): iterable
    {
        yield 'before 1970' => ['1969-12-31 23:59:57.500 UTC', '1969-12-31 23:59:57.500', SagaStatus::Expired];
        yield 'half a second before 1970' => ['1969-12-31 23:59:59.500 UTC', '1969-12-31 23:59:59.500', SagaStatus::Expired];
        yield 'with milliseconds' => ['2026-02-01 01:00:00.123 UTC', '2026-02-01 01:00:00.123', SagaStatus::Active];
        yield 'after the last time that is stored' => ['@92233720368547758', '9999-12-31 23:59:59.999', SagaStatus::Active];
    }

    public function testASagaIsReopenedForALongTimeAndPruningTakesNoNegativeTime(): void
    {
        self::cases(static function (TestBus $bus): void {
            $sagas = $bus->bus()->admin()->sagas();
            foreach ([1e16, 1e300] as $id => $expires) {
                $bus->publish(new Opened($id + 1));
                $bus->publish(new Ended($id + 1));
                $sagas->reopen('case', (string) ($id + 1), expires: $expires);
                self::assertSame([SagaStatus::Reopened, '9999'], [$sagas->find('case', (string) ($id + 1))?->status, $sagas->find('case', (string) ($id + 1))?->expiresAt?->format('Y')]);
            }
            self::assertSame(0, $sagas->prune(\INF));
            foreach ([-40 * 86_400.0, \NAN] as $before) {
                try {
                    $sagas->prune($before);
                    self::fail('the sagas are open');
                } catch (\ValueError $refused) {
                    self::assertStringStartsWith('Sagas are deleted a number of seconds of at least 0 after their end, got ', $refused->getMessage());
                }
            }
        });
    }

    public function testASagaThatEndsTwiceInOneMethodIsAMistakeAndStaysOpen(): void
    {
        self::cases(static function (TestBus $bus): void {
            $bus->publish(new Opened(1));
            $bus->publish(new Ended(1, twice: true));

            $bus->assertDeadLettered(Ended::class, because: \Error::class)->once();
            self::assertSame(SagaStatus::Active, $bus->bus()->admin()->sagas()->find('case', '1')?->status);
        });
    }

    public function testARowThatDoesNotFitItsClassDeadLettersTheMessageAndTakesDefaultsForWhatIsMissing(): void
    {
        self::cases(static function (TestBus $bus): void {
            foreach ([1, 2, 3] as $number) {
                $bus->publish(new Opened($number));
            }
            $change = static fn(int $id, string $set, mixed $value) => $bus->database->execute("UPDATE weft_sagas SET {$set} = ? WHERE id = ?", [$value, (string) $id]);
            $change(1, 'schema_version', 3);
            $change(2, 'state', '{"found":"many"}');
            $change(3, 'state', '{"found":4}');
            foreach ([1, 2, 3] as $number) {
                $bus->publish(new Tagged($number, "tag {$number}"));
            }
            $bus->assertDeadLettered(Tagged::class, because: InvalidSagaStateException::class)->times(2);
            $bus->publish(new Found('tag 3'));

            $saga = $bus->bus()->admin()->sagas()->state('case', '3');
            \assert($saga instanceof Dossier);
            self::assertSame([5, ''], [$saga->found, $saga->note]);
        });
    }

    public function testAMessageWithoutItsHeaderIsDeadLettered(): void
    {
        Simulation::run(static function (TestBus $bus): void {
            $bus->handlers(Fixtures\ByHeader::class);
            $bus->bus()->publish(new Asked('a'), new SendOptions(headers: ['ticket' => '7']));
            $bus->bus()->publish(new Asked('b'));
            $bus->run();

            $bus->assertDeadLettered(Asked::class, because: SagaNotCorrelatedException::class)->once()->with(what: 'b');
            self::assertNotNull($bus->bus()->admin()->sagas()->find(Fixtures\ByHeader::class, '7'));
        });
    }

    public function testEachSagaThatInheritsItsStartIsStarted(): void
    {
        Simulation::run(static function (TestBus $bus): void {
            $bus->handlers(CityPetition::class, StatePetition::class);
            $bus->publish(new Opened(1));

            $sagas = \array_map(static fn(SagaRecord $saga): array => [$saga->saga, $saga->state], $bus->bus()->admin()->sagas()->list());
            self::assertEqualsCanonicalizing([['city', '{"opened":1}'], ['state', '{"opened":1}']], $sagas);
        });
    }

    /** @param \Closure(TestBus): void $scenario */
    private static function cases(\Closure $scenario): void
    {
        Simulation::run(static function (TestBus $bus) use ($scenario): void {
            $bus->database->execute('CREATE TABLE effects (id TEXT)');
            $bus->handlers(Dossier::class);
            $scenario($bus);
        });
    }
}
