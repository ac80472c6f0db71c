<?php

declare(strict_types=1);

namespace Weft\Tests\Bench\Bus;

use PHPUnit\Framework\TestCase;
use Weft\Bench\Bus\Contender;
use Weft\Bench\Bus\Ground;
use Weft\Bench\Bus\Mode;
use Weft\Bench\Bus\Report;
use Weft\Bench\Bus\Results;
use Weft\Bench\Bus\Run;
use Weft\Bench\Bus\ServerCpu;
use Weft\Bench\Bus\Stored;
use Weft\Bench\Bus\Timeline;
use Weft\Bench\Bus\Transport;
use Weft\Bench\Bus\Turn;

require_once __DIR__ . '/../../../bench/autoload.php';

/** Contenders that do badly. */
final class TurnTest extends TestCase
{
    private string $log;

    protected function setUp(): void
    {
        $this->log = (string) tempnam(sys_get_temp_dir(), 'weft-turn');
    }

    protected function tearDown(): void
    {
        unlink($this->log);
    }

    public function testOneThatDiesIsMarkedAndItsLogIsKept(): void
    {
        $run = $this->take('echo cannot connect >&2; exit 3');

        self::assertSame(['exited with code 3, log: ' . $this->log, $this->log], [$run->failure(), $run->toArray()['log']]);
        self::assertSame("cannot connect\n", file_get_contents($this->log));
        self::assertNull($run->number('seconds'));
        $results = new Results('a box', [], [$run]);
        self::assertSame(["go: exited with code 3, log: {$this->log}"], $results->failures());
        self::assertStringContainsString('| go (1 of 1 failed) |', $results->table()->markdown());
    }

    public function testOneThatHangsIsEnded(): void
    {
        $started = microtime(true);
        $run = $this->take('exec sleep 600', timeout: 0.3);

        self::assertStringStartsWith('did not end within', (string) $run->failure());
        self::assertLessThan(300.0, microtime(true) - $started, 'half of what it sleeps');
    }

    public function testOneThatHangsIsNotStartedAgain(): void
    {
        // On a busy machine the time may be over before it runs.
        for ($timeout = 0.3; !is_file("{$this->log}.starts"); $timeout *= 3) {
            $contender = $this->contender('echo >>' . escapeshellarg("{$this->log}.starts") . '; exec sleep 600');
            $turn = $this->turn($timeout);
            $runs = [$turn->take($contender, $this->log), $turn->take($contender, $this->log)];
            clearstatcache();
        }
        $starts = file_get_contents("{$this->log}.starts");
        unlink("{$this->log}.starts");

        self::assertSame("\n", $starts);
        self::assertSame("{$runs[0]->failure()}; it was not started again", $runs[1]->failure());
    }

    public function testOneThatCouldNotBeBuiltIsMarkedWithoutBeingStarted(): void
    {
        $contender = $this->contender('touch ' . escapeshellarg("{$this->log}.started"));
        $contender->unavailable = 'go build exited with code 1: it needs Go';

        $run = $this->turn()->take($contender, $this->log);

        self::assertSame('go build exited with code 1: it needs Go', $run->failure());
        self::assertFileDoesNotExist("{$this->log}.started");
    }

    public function testOneThatSaysItDidEverythingIsJudgedByWhatIsThere(): void
    {
        $report = ['fill_seconds' => 1, 'commands_seconds' => 1, 'events_seconds' => 1, 'commands' => 10, 'events' => 10];

        $run = $this->take('echo ' . escapeshellarg(json_encode($report)));

        self::assertSame([null, 3, 0], [$run->failure(), $run->number('lost'), $run->number('duplicates')]);
        self::assertSame('WRONG: lost 3, duplicates 0', $run->outcome());
    }

    private function take(string $shell, float $timeout = 120.0): Run
    {
        return $this->turn($timeout)->take($this->contender($shell), $this->log);
    }

    private function contender(string $shell): Contender
    {
        return new Contender('go', 'go', Mode::Plain, Transport::RabbitMq, ['sh', '-c', $shell], []);
    }

    private function turn(float $timeout = 120.0): Turn
    {
        $ground = new class implements Ground {
            public function reset(): void {}

            public function environment(): array
            {
                return [];
            }

            public function inspect(Report $report): Stored
            {
                return new Stored(rows: 7, customers: 7, queued: 0);
            }

            public function timeline(): Timeline
            {
                return new Timeline(null);
            }

            public function cpu(): ?ServerCpu
            {
                return null;
            }
        };

        return new Turn(static fn (): Ground => $ground, 10, $timeout);
    }
}
