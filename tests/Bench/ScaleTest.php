<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bench\BenchmarkException;
use Weft\Bench\Page;
use Weft\Bench\Scale\Curve;
use Weft\Bench\Scale\Options;
use Weft\Bench\Scale\Point;
use Weft\Bench\Scale\Results;
use Weft\Bench\Scale\ServerPoints;
use Weft\Bench\Scale\TaskPoints;

require_once __DIR__ . '/../../bench/autoload.php';

final class ScaleTest extends TestCase
{
    public function testWaitingTasksAndTheirMemoryGrowTogether(): void
    {
        $points = new TaskPoints(dirname(__DIR__, 2) . '/bench/scale/tasks.php', (string) getenv('WEFT_EXTENSION'));
        $log = (string) tempnam(sys_get_temp_dir(), 'weft-scale');

        [$few, $many] = array_map(static fn (int $tasks): float => ($points->of($tasks)->measure)($log)[''], [10, 2_000]);
        unlink($log);

        self::assertGreaterThan(5 * $few, $many);
        self::assertLessThan(200.0, $many, 'MiB of 2,000 tasks');
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testTheProgramsOfTheOtherBenchmarksServeTheirCurve(Curve $curve, string $tool): void
    {
        if (trim((string) shell_exec("command -v $tool")) === '') {
            self::markTestSkipped("$tool is not installed: scripts/setup bench");
        }
        $directory = sys_get_temp_dir() . '/weft-scale-' . bin2hex(random_bytes(4));
        mkdir($directory);
        $environment = ServerPoints::environment($directory, 'postgres://nobody@127.0.0.1:1/nothing');
        [$point] = (new ServerPoints(dirname(__DIR__, 2), (string) getenv('WEFT_EXTENSION'), $environment, 1, [1]))->of($curve, 4);

        $rate = ($point->measure)("$directory/log")[''];
        exec('rm -rf ' . escapeshellarg($directory));

        self::assertGreaterThan(0.0, $rate);
    }

    public static function servers(): iterable
    {
        yield 'HTTP' => [Curve::Http, 'wrk'];
        yield 'gRPC' => [Curve::Grpc, 'h2load'];
    }

    public function testATableHasARowForEachValueAndAColumnForEachLine(): void
    {
        $point = static fn (string $series, int $x): Point => new Point(Curve::Http, $series, $x, static fn (): array => []);
        $runs = [
            Results::run($point('1 worker', 64), '1 worker', 9_000.0),
            Results::run($point('1 worker', 1), '1 worker', 1_000.0),
            Results::run($point('1 worker', 1), '1 worker', 1_200.0),
            Results::run($point('2 workers', 1), '2 workers', 900.0),
            Results::failed($point('2 workers', 64), 'did not start', 'bench/out/scale-logs/4.log'),
        ];
        $results = new Results('a box', [], $runs);

        $table = preg_replace('/ +/', ' ', $results->tables()[Curve::Http->title()]->markdown());

        self::assertFalse($results->isPerfect());
        self::assertStringContainsString("| 1 | 1,100 (1,000–1,200) | 900 |\n| 64 | 9,000 | – |\n", $table);
        self::assertStringStartsWith('| connections | 1 worker, requests per second | 2 workers, requests per second |', $table);
    }

    public function testThePublishedPageHasEveryCurve(): void
    {
        $file = (string) tempnam(sys_get_temp_dir(), 'weft-scale');
        $point = new Point(Curve::Tasks, 'resident', 10, static fn (): array => []);
        (new Results('a box', ['weft' => '1a2b3c4'], [Results::run($point, 'resident', 12.5), Results::failed($point, 'killed', 'a.log')]))->save($file);
        $results = Results::load($file);
        unlink($file);
        (new Page(dirname(__DIR__, 2) . '/bench/scale/README.template.md', $file))->make($results->markdown(), false);
        $page = (string) file_get_contents($file);
        unlink($file);

        self::assertStringContainsString('Machine: a box. Versions: weft 1a2b3c4.', $page);
        self::assertMatchesRegularExpression('/^## ' . preg_quote(Curve::Tasks->title(), '/') . '\n\n\| waiting tasks \|.*\n.*\n\| 10 +\| +12.50 \|$/m', $page);
        self::assertSame([Curve::Tasks->title() . ', resident, 10: killed; log: a.log'], $results->failures());
    }

    public function testEveryCurveHasFewerValuesInAShortRun(): void
    {
        foreach (Curve::cases() as $curve) {
            self::assertLessThan(count($curve->values(false)), count($curve->values(true)), $curve->value);
        }
    }

    public function testAnUnknownCurveIsRefusedWithTheNamesThereAre(): void
    {
        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage("there is no curve 'disk', there are: concurrency pool-size backlog http grpc tasks");

        Options::parse(['--curves=disk'], '/root');
    }
}
