<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use Weft\Bus\Bus;
use Weft\Sql\Database;
use Weft\Tests\Bus\Fixtures\Servers;

use function Weft\delay;

/** Workers that are told to stop while they have more to do than they can. */
final class DrainTest extends BusTestCase
{
    use Servers;

    private const COMMANDS = 6_000;
    private const STOPS = 3;

    /** @var resource|null */
    private $process = null;

    protected function tearDown(): void
    {
        if ($this->process !== null) {
            \proc_terminate($this->process, 9);
            \proc_close($this->process);
        }
    }

    /** @return iterable<string, array{string}> */
    public static function brokers(): iterable
    {
        yield 'RabbitMQ' => ['rabbitmq'];
        yield 'PostgreSQL' => ['postgres'];
    }

    /** @dataProvider brokers */
    public function testWhatIsInFlightIsFinishedAndNothingIsHandledTwiceThoughNobodyRecordsIt(string $kind): void
    {
        $this->inRuntime(function () use ($kind): void {
            $database = $this->database();
            $broker = $kind === 'postgres' ? $this->databaseDsn() : $this->brokerDsn();
            $bus = Bus::connect($broker, $database)->handlers(self::storing(static fn() => null));
            $bus->declare(self::QUEUE);
            $bus->sendAll(self::customers(self::COMMANDS));
            for ($stop = 1; $stop <= self::STOPS; $stop++) {
                $this->start($broker);
                $before = self::effects($database, 'done');
                while (self::effects($database, 'done') < $before + 400) {
                    delay(0.01);
                }
                [$code, $seconds] = $this->terminate();

                self::assertSame(0, $code);
                self::assertLessThan(5.0, $seconds);
                self::assertSame(self::effects($database, 'begun'), self::effects($database, 'done'), 'what had begun is done');
                self::assertGreaterThan(0, $bus->depth(self::QUEUE), 'there was more to do');
            }
            $this->start($broker);
            while (self::effects($database, 'done') < self::COMMANDS) {
                delay(0.05);
            }
            $this->terminate();

            self::assertSame([self::COMMANDS, self::COMMANDS], [self::effects($database, 'begun'), self::effects($database, 'done')]);
            self::assertSame(self::COMMANDS, $database->execute("SELECT count(DISTINCT id) FROM effects WHERE listener = 'done'")->value());
            self::assertSame([0, 0], [$bus->depth(self::QUEUE), $bus->deadLetters(self::QUEUE)->count()]);
            $bus->close();
            $database->close();
        }, deadline: 60.0);
    }

    private function start(string $broker): void
    {
        \preg_match('{\S+/libweft\.so}', (string) \file_get_contents('/proc/self/maps'), $library);
        $command = [\PHP_BINARY, '-d', 'extension=' . ($library[0] ?? 'weft'), __DIR__ . '/Fixtures/draining.php', $broker, $this->databaseDsn()];
        $process = \proc_open($command, [1 => \STDERR, 2 => \STDERR], $pipes);
        self::assertIsResource($process);
        $this->process = $process;
    }

    /** @return array{int, float} exit code, and after how many seconds */
    private function terminate(): array
    {
        \assert($this->process !== null);
        \proc_terminate($this->process, \SIGTERM);
        $started = \microtime(true);
        while (($status = \proc_get_status($this->process))['running']) {
            delay(0.005);
        }
        \proc_close($this->process);
        $this->process = null;

        return [$status['exitcode'], \microtime(true) - $started];
    }

    private static function effects(Database $database, string $what): int
    {
        return $database->execute('SELECT count(*) FROM effects WHERE listener = ?', [$what])->value();
    }
}
