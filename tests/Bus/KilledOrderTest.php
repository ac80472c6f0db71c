<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\CommandHandler;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\RabbitMqQueue;
use Weft\Tests\Bus\Fixtures\Deposit;
use Weft\Tests\Bus\Fixtures\Killable;
use Weft\Tests\Bus\Fixtures\Servers;

use function Weft\delay;

require_once __DIR__ . '/Fixtures/ordered.php';

/** Processes that consume messages that are in order, killed while they work. */
final class KilledOrderTest extends BusTestCase
{
    use Killable;
    use Servers;

    private const KEYS = 20;
    private const MESSAGES = 200;

    /** @dataProvider types */
    #[DataProvider('types')]
    public function testTheOneThatStandsByGoesOnInOrderWithEachEffectOnce(string $type): void
    {
        $this->inRuntime(function () use ($type): void {
            $database = $this->database();
            $database->execute('CREATE TABLE deposits (place BIGINT GENERATED ALWAYS AS IDENTITY, account VARCHAR(20), number INT)');
            $bus = Bus::connect(RabbitMq::connect($this->brokerDsn(), queue: $type === 'quorum' ? RabbitMqQueue::quorum() : null), $database)->handlers(new class {
                #[CommandHandler]
                public function deposit(Deposit $command): void {}
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll((static function (): iterable {
                for ($number = 1; $number <= self::MESSAGES; $number++) {
                    for ($key = 1; $key <= self::KEYS; $key++) {
                        yield new Deposit("a{$key}", $number);
                    }
                }
            })());
            $count = static fn(): int => $database->execute('SELECT count(*) FROM deposits')->value();
            $this->start('depositing.php', $type);
            $this->start('depositing.php', $type);
            $owner = static fn(): int => (int) (\explode(' ', (string) $database->execute("SELECT owner FROM weft_locks WHERE name = 'queue customers'")->value())[1] ?? 0);
            $killed = 0;
            for ($round = 1; $round <= 2; $round++) {
                $before = $count();
                while ($count() < $before + 100 || $owner() === $killed) {
                    delay(0.01);
                }
                $this->start('depositing.php', $type);
                $killed = $owner();
                self::assertLessThan(self::KEYS * self::MESSAGES, $count(), 'it is killed while it works');
                $this->kill($killed);
            }
            while ($count() < self::KEYS * self::MESSAGES) {
                delay(0.05);
            }
            delay(0.5);

            $rows = $database->execute('SELECT account, number FROM deposits ORDER BY place')->rows();
            self::assertCount(self::KEYS * self::MESSAGES, $rows);
            $seen = [];
            foreach ($rows as $row) {
                $seen[$row['account']][] = $row['number'];
            }
            foreach ($seen as $account => $numbers) {
                self::assertSame(\range(1, self::MESSAGES), $numbers, "account {$account}");
            }
            self::assertSame([[], 0], [$bus->queue(self::QUEUE)->blockedKeys(), $bus->queue(self::QUEUE)->deadLetters()->count()]);
            $bus->close();
            $database->close();
        }, 180.0);
    }

    /** @return iterable<string, array{string}> */
    public static function types(): iterable
    {
        yield 'classic queue' => ['classic'];
        yield 'quorum queue' => ['quorum'];
    }
}
