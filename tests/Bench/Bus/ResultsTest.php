<?php

declare(strict_types=1);

namespace Weft\Tests\Bench\Bus;

use PHPUnit\Framework\TestCase;
use Weft\Bench\BenchmarkException;
use Weft\Bench\Bus\Contender;
use Weft\Bench\Bus\Contenders;
use Weft\Bench\Bus\Mode;
use Weft\Bench\Bus\Published;
use Weft\Bench\Bus\Readme;
use Weft\Bench\Bus\Report;
use Weft\Bench\Bus\Results;
use Weft\Bench\Bus\Run;
use Weft\Bench\Bus\ServerCpu;
use Weft\Bench\Bus\Stored;
use Weft\Bench\Bus\Transport;
use Weft\Bench\ProcessTree;
use Weft\Bench\Usage;
use Weft\Bench\Versions;

require_once __DIR__ . '/../../../bench/autoload.php';

final class ResultsTest extends TestCase
{
    private const FIELDS = [
        'system', 'mode', 'transport', 'persistent', 'confirms', 'seconds', 'fill_per_s', 'commands_per_s', 'events_per_s',
        'cpu_s', 'broker_cpu_s', 'database_cpu_s', 'rss_mib', 'phases_s', 'timeline', 'rows', 'lost', 'duplicates',
    ];

    public function testARunThatStoredEachCommandOnceIsPerfect(): void
    {
        $run = $this->finished(new Stored(rows: 100, customers: 100, queued: 0));

        self::assertTrue($run->isPerfect());
        self::assertSame(self::FIELDS, array_keys($run->toArray()));
        self::assertSame([200.0, 50.0, 100.0], [$run->number('fill_per_s'), $run->number('commands_per_s'), $run->number('events_per_s')]);
    }

    public function testTheProcessorTimeOfServersIsCountedFromTheStartOfTheRun(): void
    {
        $during = (new ServerCpu(broker: 12.5, database: 3.0))->since(new ServerCpu(broker: 10.0, database: 1.5));

        self::assertSame([2.5, 1.5], [$during->broker, $during->database]);
        self::assertSame(2.5, $this->finished(new Stored(100, 100, 0))->number('broker_cpu_s'));
    }

    public function testTheTimeOfChildrenThatHaveEndedCountsAlsoForAProcessThatLeadsNoSession(): void
    {
        $tree = new ProcessTree(getmypid());
        $before = $tree->cpuSeconds();
        $child = proc_open([PHP_BINARY, '-n', '-r', 'while (getrusage()["ru_utime.tv_usec"] < 300000);'], [], $pipes);
        proc_close($child);

        self::assertGreaterThanOrEqual($before + 0.2, $tree->cpuSeconds());
        self::assertSame(0.0, (new ProcessTree(2 ** 22 + 1))->cpuSeconds(), 'no process has this id');
    }

    public function testACommandWithoutARowIsLost(): void
    {
        self::assertSame(2, $this->finished(new Stored(rows: 98, customers: 98, queued: 0))->number('lost'));
    }

    public function testACommandStoredTwiceDoesNotHideALostOne(): void
    {
        $run = $this->finished(new Stored(rows: 100, customers: 99, queued: 0));

        self::assertSame([1, 1], [$run->number('lost'), $run->number('duplicates')]);
    }

    public function testAnEventThatNeverCameIsLost(): void
    {
        self::assertSame(1, $this->finished(new Stored(100, 100, 0), events: 99)->number('lost'));
    }

    public function testMessagesLeftInTheQueueAreDuplicates(): void
    {
        $run = $this->finished(new Stored(rows: 100, customers: 100, queued: 3));

        self::assertSame(3, $run->number('duplicates'));
        self::assertFalse($run->isPerfect());
    }

    public function testEventsBeforeTheLastCommandDoNotCountForTheRateOfEvents(): void
    {
        $run = $this->finished(new Stored(100, 100, 0), overlapped: 60);

        self::assertSame(40.0, $run->number('events_per_s'));
    }

    public function testOutputThatIsNotAReportIsQuoted(): void
    {
        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage('its output has no number fill_seconds: "Segmentation fault"');

        Report::parse('Segmentation fault');
    }

    public function testTheTableComparesMediansWithGoAndNamesFailures(): void
    {
        $results = new Results('a machine', ['php' => '8.2'], [
            $this->finished(new Stored(100, 100, 0), seconds: 4.0),
            $this->finished(new Stored(100, 100, 0), seconds: 8.0, system: 'go'),
            Run::failed($this->contender('weft'), 'exited with code 1', 'bench/out/weft.log'),
        ]);

        $table = $results->table()->markdown();

        self::assertMatchesRegularExpression('/^\| weft plain \(1 of 2 failed\) .* 4\.00 \| 0\.50 \|.* 100 \| +0 \| +0 \|$/m', $table);
        self::assertMatchesRegularExpression('/^\| go .* 8\.00 \| 1\.00 \|/m', $table);
        self::assertFalse($results->isPerfect());
    }

    public function testResultsSurviveTheirFile(): void
    {
        $path = tempnam(sys_get_temp_dir(), 'weft-bench');
        $results = new Results('a machine', ['php' => '8.2'], [$this->finished(new Stored(100, 100, 0))]);

        $results->save($path);

        self::assertEquals($results, Results::load($path));
        unlink($path);
    }

    public function testTheReadmeShowsWhatTheResultsSay(): void
    {
        $values = Readme::values(new Results('a machine', ['php' => '8.2', 'go' => '1.26'], [$this->finished(new Stored(100, 100, 0))]), null);

        self::assertSame(
            ['a machine', 'php 8.2, go 1.26', '100', '1', 'transient', ''],
            [$values['machine'], $values['versions'], $values['commands'], $values['runs'], $values['delivery'], $values['matrix']],
        );
        self::assertStringStartsWith('| contender', $values['table']);
    }

    public function testTheMatrixHasARowForEachSystemAndAColumnForEachCell(): void
    {
        $all = Contenders::matrix(Contenders::all('/bench', '/go', '/libweft.so'));

        self::assertSame(
            ['weft-transient', 'weft-transient-confirmed', 'weft-persistent', 'weft-persistent-confirmed', 'go-transient'],
            array_slice(array_column($all, 'name'), 0, 5),
        );
        self::assertCount(16, $all);
        $runs = array_map(static fn (Contender $contender): Run => Run::failed($contender, 'not built', 'log'), $all);
        $table = (new Results('a machine', [], $runs))->matrix()->markdown();
        self::assertSame(4, preg_match_all('/^\| (go|pure-php|symfony-messenger|weft) .*–/m', $table));
        self::assertStringContainsString('transient, confirms off | transient, confirms on', preg_replace('/ +/', ' ', $table));
    }

    public function testTheMatrixSumsWhatWasLostAndWhatCameTwice(): void
    {
        $results = new Results('a machine', [], [
            $this->finished(new Stored(rows: 98, customers: 98, queued: 0)),
            $this->finished(new Stored(rows: 100, customers: 100, queued: 3)),
            $this->finished(new Stored(rows: 100, customers: 100, queued: 0), system: 'go'),
        ]);

        $table = (string) preg_replace('/ +/', ' ', $results->matrix()->markdown());

        self::assertStringContainsString('| lost | duplicates |', $table);
        self::assertMatchesRegularExpression('/^\| weft .* 2 \| 3 \|$/m', $table);
        self::assertMatchesRegularExpression('/^\| go .* 0 \| 0 \|$/m', $table);
        self::assertStringContainsString('Seconds for 100 commands and their events, median of 2 runs', Readme::values($results, $results)['matrix']);
    }

    public function testPhpServiceBusTakesPartWhereItIsInstalled(): void
    {
        $all = Contenders::all('/bench', '/go', '/libweft.so', '/installed');

        self::assertSame('php-service-bus', end($all)->name);
        self::assertSame(['/bench/peers/php-service-bus/app.php', '/installed/vendor/autoload.php'], end($all)->missingFiles());
        self::assertSame(['SERVICE_BUS' => '/installed'], end($all)->with(persistent: true)->environment);
        self::assertNotContains('php-service-bus', array_column(Contenders::all('/bench', '/go', '/libweft.so'), 'name'));
    }

    public function testPhpServiceBusHasNoConfirmsInTheMatrix(): void
    {
        $names = array_column(Contenders::matrix(Contenders::all('/bench', '/go', '/libweft.so', '/installed')), 'name');

        self::assertSame(['php-service-bus-transient', 'php-service-bus-persistent'], array_slice($names, 16));
    }

    public function testThePublishedFiguresStandBesideAllWhoStandForThem(): void
    {
        $runs = [$this->finished(new Stored(100, 100, 0)), $this->finished(new Stored(100, 100, 0), system: 'php-service-bus')];

        $table = (string) preg_replace('/ +/', ' ', Published::seconds(new Results('a machine', [], $runs))->markdown());

        self::assertStringContainsString('| php-service-bus | 50 | 60 | 65 | php-service-bus |', $table);
        self::assertStringContainsString('| php-service-bus | 50 | 60 | 65 | weft plain |', $table);
        self::assertStringNotContainsString('| go |', $table);
    }

    public function testThePackagesThatComposerInstalledHaveTheirVersions(): void
    {
        $directory = sys_get_temp_dir() . '/weft-composer-' . bin2hex(random_bytes(4));
        mkdir("$directory/vendor/composer", recursive: true);
        file_put_contents("$directory/vendor/composer/installed.json", '{"packages": [{"name": "phpinnacle/ridge", "version": "v1.3.4"}]}');

        self::assertSame('1.3.4', Versions::composer($directory, 'phpinnacle/ridge'));
        self::assertSame('', Versions::composer($directory, 'amphp/amp'));
        self::assertSame('', Versions::composer('/nowhere', 'amphp/amp'));
        exec('rm -rf ' . escapeshellarg($directory));
    }

    public function testAnUnknownContenderIsRefusedWithTheNamesThereAre(): void
    {
        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage("there is no contender 'rust', there are: weft-plain weft-confirmed weft-safe weft-batch weft-batch-safe weft-postgres weft-embedded go");

        Contenders::select(Contenders::all('/bench', '/go', '/libweft.so'), ['go', 'rust']);
    }

    public function testAContenderThatIsNotBuiltIsNamedBeforeAnythingRuns(): void
    {
        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage('weft-plain needs /libweft.so and /bench/weft/app.php');

        Contenders::select(Contenders::all('/bench', '/go', '/libweft.so'), ['weft-plain']);
    }

    private function finished(Stored $stored, int $events = 100, int $overlapped = 0, float $seconds = 3.5, string $system = 'weft'): Run
    {
        $report = Report::parse(json_encode([
            'fill_seconds' => 0.5,
            'commands_seconds' => 2,
            'events_seconds' => 1,
            'commands' => 100,
            'events' => $events,
            'events_overlapped' => $overlapped,
        ]));

        return Run::finished($this->contender($system), 100, new Usage($seconds, 1.5, 30.0, ''), new ServerCpu(2.5, 1.25), $report, $stored);
    }

    private function contender(string $system): Contender
    {
        return new Contender($system, $system, Mode::Plain, Transport::RabbitMq, [], []);
    }
}
