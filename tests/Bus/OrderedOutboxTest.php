<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\Context;
use Weft\Bus\Header;
use Weft\Bus\InboxOptions;
use Weft\Bus\Internal\Persistence\InboxBatch;
use Weft\Bus\Internal\Persistence\OutboxRelay;
use Weft\Bus\Internal\Persistence\Tables;
use Weft\Bus\PublishException;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Outgoing;
use Weft\Sql\Bytes;
use Weft\Sql\Database;
use Weft\Sql\Internal\Schema\Migrator;
use Weft\Sql\Transaction;
use Weft\Tests\Bus\Fixtures\Deposit;
use Weft\Tests\Bus\Fixtures\MariaDb;
use Weft\Tests\Bus\Fixtures\PostgresSchema;
use Weft\Tests\Bus\Fixtures\SpyTransport;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;
use Weft\Tests\Bus\Fixtures\Withdraw;
use Weft\Tests\RecordingLogger;

use function Weft\async;
use function Weft\delay;

require_once __DIR__ . '/Fixtures/ordered.php';

/** Handlers of ordered messages that send ordered messages, which cannot be published at once. */
final class OrderedOutboxTest extends BusTestCase
{
    use MariaDb;
    use PostgresSchema;
    use TemporaryDatabase;

    /** @var list<int> numbers of the events, as they were published */
    private array $published = [];

    private int $failures = 0;
    /** Whether the broker rejects the messages by basic.nack, such as for a full queue; it is away otherwise. */
    private bool $nacks = false;
    private SpyTransport $spy;
    private Database $database;
    private RecordingLogger $logger;

    public function testWhatLaterMessagesOfAKeySendWaitsForWhatCannotBePublished(): void
    {
        $this->inRuntime(function (): void {
            $bus = $this->bus();
            $this->failures = 2;
            self::drain($bus);

            self::assertSame([1, 2, 3], $this->published);
            self::assertCount(1, $this->logger->of('error'));
            self::assertSame(0, $this->database->execute('SELECT count(*) FROM weft_outbox')->value());
        });
    }

    public function testTheNextConsumerPublishesWhatTheOneBeforeHasLeftInTheOutboxBeforeItHandlesAMessage(): void
    {
        $this->inRuntime(function (): void {
            $bus = $this->bus();
            $this->failures = 1;
            $this->whenItFails($bus->stop(...));
            self::drain($bus);
            self::assertSame([], $this->published);
            self::assertSame(1, $this->database->execute('SELECT count(*) FROM weft_outbox')->value());
            self::drain($bus);

            self::assertSame([1, 2, 3], $this->published);
        });
    }

    public function testTheNextConsumerHandlesNoMessageWhileTheOutboxCannotBePublished(): void
    {
        $this->inRuntime(function (): void {
            $bus = $this->bus();
            $this->failures = 1;
            $this->whenItFails($bus->stop(...));
            self::drain($bus);
            $this->failures = 1_000;
            $this->whenItFails(static fn() => null);

            $consumer = async(static fn(): int => $bus->consume(self::QUEUE, options: new ConsumeOptions(signals: false)));
            while (!$this->logger->hasRecord('warning', 'Queue {queue} is not consumed before the ordered messages in the outbox are published')) {
                delay(0.01);
            }
            $bus->stop();
            self::assertSame(0, $consumer->await());
            self::assertSame([], $this->published);
            $this->failures = 0;
            self::drain($bus);
            self::assertSame([1, 2, 3], $this->published);
        });
    }

    /** A full queue may be that of the handler itself: only its consumer makes room. */
    public function testMessagesThatTheBrokerRejectsForNowHoldUpNoOthers(): void
    {
        $this->inRuntime(function (): void {
            $bus = $this->bus();
            $this->nacks = true;
            $this->failures = \PHP_INT_MAX;
            self::drain($bus);
            self::assertSame([0, 3], [$bus->queue(self::QUEUE)->depth(), $this->database->execute('SELECT count(*) FROM weft_outbox')->value()]);
            $bus->send(new Deposit('b', 4));
            self::drain($bus);
            self::assertSame([0, 4], [$bus->queue(self::QUEUE)->depth(), $this->database->execute('SELECT count(*) FROM weft_outbox')->value()]);
            self::assertSame([], $this->published);
            $this->failures = 0;
            self::drain($bus);

            self::assertSame([1, 2, 3, 4], $this->published);
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testARedeliveredMessageThatWasHandledPublishesWhatItHasSentBeforeTheNextOfItsKey(string $database): void
    {
        $this->inRuntime(function () use ($database): void {
            $this->database = match ($database) {
                'postgres' => Database::connect($this->databaseDsn()),
                'mariadb' => $this->mariaDb(),
                default => Database::connect($this->dsn()),
            };
            // It is in front of them and recorded nowhere, so it is handled again when it returns.
            $late = null;
            $bus = $this->bus(self::storing(function () use (&$late): void {
                $late === null || $this->database->execute('INSERT INTO weft_outbox (id, type, must_route, headers, body, cause) VALUES (?, ?, ?, ?, ?, ?)', [$late['id'], $late['type'], $late['must_route'], $late['headers'], new Bytes($late['body']), $late['cause']]);
            }));
            $this->failures = 1;
            $this->whenItFails($bus->stop(...));
            // As if the process had ended between its commit and the publishing: the messages return.
            $this->spy->loseAcks = true;
            $bus->consume(self::QUEUE, 1, new ConsumeOptions(signals: false));
            $this->spy->loseAcks = false;
            // As if the server had finished the commit only after the next process has taken over.
            [$late] = $this->database->execute('SELECT * FROM weft_outbox')->rows();
            $this->database->execute('DELETE FROM weft_outbox');
            $bus->consume(self::QUEUE, 1, new ConsumeOptions(stopWhenEmpty: true));

            self::assertSame([1, 2, 3], $this->published);
            $this->database->close();
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testWhatAMessageHasSentIsFoundByAnIndexHoweverLongTheOutboxIs(string $kind): void
    {
        $this->inRuntime(function () use ($kind): void {
            $database = match ($kind) {
                'postgres' => Database::connect($this->databaseDsn()),
                'mariadb' => $this->mariaDb(),
                default => Database::connect($this->dsn()),
            };
            (new Migrator($database))->ensure(Tables::component());
            $message = static fn(int $number): Outgoing => new Outgoing('event', "{$number}", [
                Header::MESSAGE_ID => "id {$number}",
                Header::CORRELATION_ID => 'cause ' . \intdiv($number, 2),
            ] + ($number % 100 === 99 ? [] : [Header::ORDER_KEY => 'key']));
            $entry = new InboxBatch($database, 1);
            $database->transaction(static fn(Transaction $transaction) => $entry->send($transaction, \array_map($message, \range(0, 1999))));
            $kind === 'mariadb' ? $database->execute('ANALYZE TABLE weft_outbox')->rows() : $database->execute('ANALYZE');
            $plan = $database->execute(($kind === 'sqlite' ? 'EXPLAIN QUERY PLAN ' : 'EXPLAIN ') . 'SELECT count(*) FROM weft_outbox WHERE id <= ? AND cause = ?', ['id 9', 'cause 7'])->rows();
            self::assertStringContainsString('weft_outbox_cause', (string) \json_encode($plan));

            $spy = new SpyTransport(new Memory());
            $published = [];
            $spy->before = static function (string $what, array $messages) use (&$published): void {
                $published = [...$published, ...\array_map(static fn(Outgoing $message): string => $message->body, $messages)];
            };
            (new OutboxRelay($database, $spy, new RecordingLogger(), 120.0))->settleOrder('cause 49');

            self::assertSame(['98'], $published, 'not 99, which has no key');
            self::assertSame(1999, $database->execute('SELECT count(*) FROM weft_outbox')->value());
            $database->close();
        });
    }

    /** @return iterable<string, array{string}> */
    public static function databases(): iterable
    {
        yield 'SQLite' => ['sqlite'];
        yield 'PostgreSQL' => ['postgres'];
        yield 'MariaDB or MySQL' => ['mariadb'];
    }

    private function bus(object ...$more): Bus
    {
        $this->database ??= Database::connect($this->dsn());
        $this->logger = new RecordingLogger();
        $this->spy = new SpyTransport(new Memory());
        $this->whenItFails(static fn() => null);
        $bus = Bus::connect($this->spy, $this->database, new BusOptions(logger: $this->logger, inbox: new InboxOptions(relayAfter: 120.0)))->handlers(new class {
            #[CommandHandler]
            public function deposit(Deposit $command, Transaction $transaction, Context $context): void
            {
                $context->publish(new Withdraw((string) $command->account, $command->number));
            }
        }, ...$more);
        $bus->queue(self::QUEUE)->declare();
        $more === [] || $bus->send(self::customer(1));
        $bus->sendAll([new Deposit('a', 1), new Deposit('a', 2), new Deposit('a', 3)]);

        return $bus;
    }

    private function whenItFails(\Closure $then): void
    {
        $this->spy->before = function (string $what, array $messages) use ($then): void {
            $isEvent = $what === 'publish' && $messages[0]->type === Withdraw::class;
            if ($isEvent && $this->failures > 0) {
                $this->failures--;
                $then();
                throw new PublishException($this->nacks ? 'the queue is full' : 'the broker is away', nacked: $this->nacks);
            }
            $this->note($what, $messages);
        };
    }

    /** @param list<Outgoing> $messages */
    private function note(string $what, array $messages): void
    {
        foreach ($what === 'publish' ? $messages : [] as $message) {
            $message->type === Withdraw::class && $this->published[] = (int) \json_decode($message->body, true)['number'];
        }
    }
}
