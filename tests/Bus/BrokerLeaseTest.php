<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\BrokerConflictException;
use Weft\Bus\Bus;
use Weft\Bus\SendOptions;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Postgres;
use Weft\Bus\Transport\RabbitMq;
use Weft\Sql\Database;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\MariaDb;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Bus\Fixtures\SpyTransport;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;

use function Weft\all;
use function Weft\delay;

/** Buses on different brokers that are given one database. */
final class BrokerLeaseTest extends BusTestCase
{
    use MariaDb;
    use Servers;
    use TemporaryDatabase;

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testABusOnAnotherBrokerDoesNotPublishTheMessagesInTheDatabase(string $kind): void
    {
        $this->inRuntime(function () use ($kind): void {
            $database = $this->databaseOf($kind);
            $events = $commands = [];
            $one = Bus::connect(new Memory(), $database)->handlers(self::listening(static function (CustomerStored $event) use (&$events): void {
                $events[] = $event->id;
            }));
            $two = Bus::connect("sqlite://{$this->directory}/jobs.db", $database)->handlers(self::storing(static function (StoreCustomer $command) use (&$commands): void {
                $commands[] = $command->id;
            }));
            $one->queue(self::QUEUE)->declare();
            $one->publish(new CustomerStored('1'), new SendOptions(delay: 0.001));
            $two->queue(self::QUEUE)->declare();
            $two->send(self::customer(1));
            foreach (['consume' => static fn() => self::drain($two), 'store' => static fn() => $two->send(self::customer(2), new SendOptions(delay: 1.0)), 'flush' => static fn() => $two->admin()->flushOutbox()] as $what => $act) {
                try {
                    $act();
                    self::fail("{$what}: it has another broker");
                } catch (BrokerConflictException $conflict) {
                    self::assertStringContainsString('of a bus on the memory of a process, used ', $conflict->getMessage());
                    self::assertStringContainsString('A bus on SQLite, file "jobs.db" would publish them to its own broker', $conflict->getMessage());
                }
            }
            self::assertSame([[], 1], [$commands, $database->execute('SELECT count(*) FROM weft_delayed')->value()]);

            // The rows keep the place of a broker that is no longer used, and nothing else does.
            $database->execute('UPDATE weft_broker SET used_at = used_at - 1000');
            try {
                (Bus::connect("sqlite://{$this->directory}/jobs.db", $database))->admin()->flushOutbox();
                self::fail('a message waits');
            } catch (BrokerConflictException $conflict) {
                self::assertStringContainsString('let it publish what waits, 0 in weft_outbox and 1 in weft_delayed, or run `DELETE FROM weft_broker`', $conflict->getMessage());
            }
            self::until(static function () use ($one, &$events): bool {
                self::drain($one);

                return $events === ['1'];
            });
            self::drain($two);
            self::assertSame(['1'], $commands);
            $one->close();
            $two->close();
            $database->close();
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testTheLastBusThatEndsReleasesTheDatabase(string $kind): void
    {
        $this->inRuntime(function () use ($kind): void {
            $database = $this->databaseOf($kind);
            $listener = static fn(): object => self::listening(static fn() => null);
            $moved = Bus::connect("sqlite://{$this->directory}/jobs.db", $database)->handlers($listener());
            [$consumer, $sender] = [Bus::connect(new Memory(), $database)->handlers($listener()), Bus::connect(new Memory(), $database)];
            $consumer->queue(self::QUEUE)->declare();
            $sender->admin()->flushOutbox();
            self::drain($consumer);
            try {
                $moved->admin()->flushOutbox();
                self::fail('the sender uses the other broker');
            } catch (BrokerConflictException $conflict) {
                self::assertMatchesRegularExpression('/No message waits\. .* after a crash it is free in 1[78]\d s, or at once after `DELETE FROM weft_broker`/', $conflict->getMessage());
            }

            $sender->close();
            self::assertSame(0, self::drain($moved));
            self::assertSame(0, $database->execute('SELECT count(*) FROM weft_broker')->value());

            // It holds the database again when it is used again, also for the handlers of its next run.
            $consumer->admin()->flushOutbox();
            self::assertSame(['the memory of a process'], $database->execute('SELECT name FROM weft_broker WHERE id = 1')->column());
            self::drain($consumer);
            $moved->admin()->flushOutbox();
            $consumer->close();
            self::assertSame(['SQLite, file "jobs.db"'], $database->execute('SELECT DISTINCT name FROM weft_broker')->column());
            $moved->close();
            self::assertSame(0, $database->execute('SELECT count(*) FROM weft_broker')->value());
            $database->close();
            $moved->close();
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testABusThatEndsKeepsTheDatabaseForMessagesThatWait(string $kind): void
    {
        $this->inRuntime(function () use ($kind): void {
            $database = $this->databaseOf($kind);
            $bus = Bus::connect(new Memory(), $database);
            $bus->queue(self::QUEUE)->declare();
            $bus->publish(new CustomerStored('1'), new SendOptions(delay: 3600.0));
            self::drain($bus);
            $bus->close();

            $this->expectException(BrokerConflictException::class);
            $this->expectExceptionMessage('0 in weft_outbox and 1 in weft_delayed');
            try {
                Bus::connect("sqlite://{$this->directory}/jobs.db", $database)->admin()->flushOutbox();
            } finally {
                $database->close();
            }
        });
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testBusesThatUseAndReleaseTheDatabaseAtTheSameTimeNeverHaveTwoBrokers(string $kind): void
    {
        $this->inRuntime(function () use ($kind): void {
            $database = $this->databaseOf($kind);
            $using = [];
            $connect = fn(string $name): Bus => Bus::connect($name === '' ? new Memory() : "sqlite://{$this->directory}/{$name}.db", $database);
            $connect('')->admin()->flushOutbox();
            $database->execute('DELETE FROM weft_broker');
            all(\array_map(static fn(int $worker): \Closure => static function () use ($connect, $worker, &$using): void {
                $name = $worker % 2 === 0 ? '' : 'jobs';
                for ($i = 0; $i < 10; $i++) {
                    $bus = $connect($name);
                    try {
                        $bus->admin()->flushOutbox();
                        $using[$name] = ($using[$name] ?? 0) + 1;
                        self::assertSame([$name], \array_keys(\array_filter($using)));
                        delay(0.001);
                        self::assertSame([$name], \array_keys(\array_filter($using)));
                        $using[$name]--;
                    } catch (BrokerConflictException) {
                        delay(0.001);
                    }
                    $bus->close();
                }
            }, \range(1, 6)));
            self::assertSame(0, $database->execute('SELECT count(*) FROM weft_broker')->value());
            $database->close();
        });
    }

    public function testTheNameOfABrokerHasNeitherHostNorUser(): void
    {
        $this->inRuntime(function (): void {
            $postgres = $this->database();
            [$name, $schema] = \array_values($postgres->execute('SELECT current_database()::text AS name, current_schema()::text AS within')->rows()[0]);
            $host = \rawurldecode(\substr((string) \parse_url($this->brokerDsn(), \PHP_URL_PATH), 1));
            $names = [
                'RabbitMQ, virtual host "' . $host . '"' => RabbitMq::connect($this->brokerDsn()),
                "PostgreSQL, database \"{$name}\", schema \"{$schema}\"" => Postgres::on($postgres),
            ];
            foreach ($names as $expected => $transport) {
                $file = Database::connect($this->dsn(\md5($expected)));
                $bus = Bus::connect($transport, $file);
                $bus->admin()->flushOutbox();
                self::assertSame([$expected], $file->execute('SELECT name FROM weft_broker WHERE id = 1')->column());
                $bus->close();
                $file->close();
            }
            $bus = Bus::connect(Postgres::on($postgres), $postgres);
            $bus->admin()->flushOutbox();
            self::assertSame(['this database'], $postgres->execute('SELECT name FROM weft_broker WHERE id = 1')->column());
            $bus->close();
            $postgres->close();
        });
    }

    public function testATransportOfTheApplicationIsNotChecked(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect($this->dsn());
            foreach ([new Memory(), new SpyTransport(new Memory())] as $transport) {
                Bus::connect($transport, $database)->admin()->flushOutbox();
            }
            self::assertSame(['the memory of a process'], $database->execute('SELECT name FROM weft_broker WHERE id = 1')->column());
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

    private function databaseOf(string $kind): Database
    {
        return match ($kind) {
            'postgres' => Database::connect($this->databaseDsn()),
            'mariadb' => $this->mariaDb(),
            default => Database::connect($this->dsn()),
        };
    }

    private static function until(\Closure $condition): void
    {
        while (!$condition()) {
            delay(0.01);
        }
    }
}
