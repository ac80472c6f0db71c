<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CrashedTooOftenException;
use Weft\Bus\DeadLetter;
use Weft\Bus\InboxOptions;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\RabbitMqQueue;
use Weft\Sql\Database;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Extension;

use function Weft\delay;

/** A message that takes its worker along, each time. */
final class CrashTest extends BusTestCase
{
    use Servers;

    private const CRASHES = 3;

    /** @var list<resource> */
    private array $processes = [];

    protected function tearDown(): void
    {
        foreach ($this->processes as $process) {
            \proc_terminate($process, 9);
            \proc_close($process);
        }
    }

    /** @return iterable<string, array{string, int}> */
    public static function brokers(): iterable
    {
        yield 'classic queue' => ['classic', 2];
        yield 'classic queue, six workers' => ['classic', 6];
        yield 'quorum queue, six workers' => ['quorum', 6];
        yield 'PostgreSQL, six workers' => ['postgres', 6];
    }

    /** @dataProvider brokers */
    #[DataProvider('brokers')]
    public function testOnlyTheMessageThatCrashesWorkersIsDeadLettered(string $kind, int $workers): void
    {
        $this->inRuntime(function () use ($kind, $workers): void {
            $database = $this->database();
            $broker = match ($kind) {
                'classic' => $this->brokerDsn(),
                'quorum' => RabbitMq::connect($this->brokerDsn(), queue: RabbitMqQueue::quorum()),
                'postgres' => $this->databaseDsn(),
            };
            $bus = Bus::connect($broker, $database, new BusOptions(inbox: new InboxOptions(maxCrashes: self::CRASHES)));
            $bus->handlers(self::storing(static fn() => null))->queue(self::QUEUE)->declare();
            $bus->sendAll((static function (): iterable {
                for ($id = 1; $id <= 300; $id++) {
                    yield self::customer($id === 30 ? 'crash' : $id);
                }
            })());
            $deaths = 0;
            while ($bus->queue(self::QUEUE)->deadLetters()->count() === 0 || self::effects($database) < 299) {
                $deaths += $this->replace($workers, $kind);
                delay(0.05);
            }
            // Whoever died since the last look. A process that ends closes its sockets some time before it is gone.
            for ($looks = 0; $deaths + $this->dead() < self::CRASHES && $looks < 600; $looks++) {
                delay(0.1);
            }
            $deaths += $this->replace(0, $kind);

            $letters = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame([CrashedTooOftenException::class], \array_map(static fn(DeadLetter $letter): ?string => $letter->errorClass(), $letters));
            [$letter] = $letters;
            self::assertStringContainsString('"id":"crash"', $letter->body);
            self::assertStringContainsString('was handled ' . self::CRASHES . ' times by workers that ended', $letter->errorMessage());
            self::assertSame(self::CRASHES, $deaths);
            self::assertSame(299, self::effects($database), 'each neighbour once');
            $bus->close();
            $database->close();
        }, deadline: 180.0);
    }

    /** @return int how many have died since */
    private function replace(int $size, string $kind): int
    {
        $deaths = 0;
        foreach ($this->processes as $index => $process) {
            if (!\proc_get_status($process)['running']) {
                \proc_close($process);
                unset($this->processes[$index]);
                $deaths++;
            }
        }
        while (\count($this->processes) < $size) {
            $command = [\PHP_BINARY, '-d', 'extension=' . Extension::library(), __DIR__ . '/Fixtures/crashing.php', $kind, $this->brokerDsn(), $this->databaseDsn(), (string) self::CRASHES];
            $process = \proc_open($command, [1 => \STDERR, 2 => \STDERR], $pipes);
            self::assertIsResource($process);
            $this->processes[] = $process;
        }

        return $deaths;
    }

    private function dead(): int
    {
        return \count(\array_filter($this->processes, static fn($process): bool => !\proc_get_status($process)['running']));
    }

    private static function effects(Database $database): int
    {
        return $database->execute('SELECT count(*) FROM effects')->value();
    }
}
