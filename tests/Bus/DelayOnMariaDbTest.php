<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use Weft\Bus\Bus;
use Weft\Bus\SendOptions;
use Weft\Bus\Transport\Memory;
use Weft\Runtime\Task;
use Weft\Sql\Transaction;

use function Weft\async;
use function Weft\delay;

/** Messages that wait in MariaDB. */
final class DelayOnMariaDbTest extends DelayTest
{
    protected const SERVER = 'WEFT_MYSQL_DSN';

    public static function buses(): iterable
    {
        yield 'RabbitMQ and MariaDB or MySQL' => [\iterator_to_array(parent::buses())['RabbitMQ and PostgreSQL'][0]];
    }

    public static function busesAndDelayQueues(): iterable
    {
        return self::buses();
    }

    public function testADelayedMessageThatDeadlocksWithAWorkerIsStoredAllTheSame(): void
    {
        $this->inRuntime(function (): void {
            $database = $this->database();
            $bus = Bus::connect(new Memory(), $this->database());
            $bus->send(self::customer('first'), new SendOptions(delay: 3_600.0));
            $deadlocks = static fn(): int => (int) $database->execute("SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'")->value();
            $before = $deadlocks();
            $database->execute('CREATE TABLE ballast (id INT PRIMARY KEY)');

            $sending = $database->transaction(static function (Transaction $worker) use ($bus): Task {
                // The server rolls back the transaction that has changed fewer rows.
                $worker->execute('INSERT INTO ballast VALUES ' . \implode(', ', \array_map(static fn(int $id): string => "($id)", \range(1, 100))));
                $worker->execute('SELECT * FROM weft_delayed WHERE due > 0 ORDER BY due FOR UPDATE')->rows();
                $sending = async(static fn() => $bus->send(self::customer('second'), new SendOptions(delay: 1_800.0, id: 'second')));
                // InnoDB refreshes this table only when the last read of it is more than 0.1 s ago.
                do {
                    delay(0.2);
                    $waiting = $worker->execute("SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE 'INSERT INTO weft_delayed%'")->value();
                } while ($waiting === 0);
                $worker->execute("SELECT * FROM weft_delayed WHERE id = 'second' FOR UPDATE")->rows();

                return $sending;
            });
            $sending->await();

            self::assertGreaterThan($before, $deadlocks());
            self::assertSame(2, $database->execute('SELECT count(*) FROM weft_delayed')->value());
            $bus->close();
            $database->close();
        });
    }
}
