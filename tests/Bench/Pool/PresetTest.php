<?php

declare(strict_types=1);

namespace Weft\Tests\Bench\Pool;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bench\Load\Latency;
use Weft\Bench\Load\Load;
use Weft\Bench\Page;
use Weft\Bench\Pool\Preset;
use Weft\Bench\Pool\Results;
use Weft\Bench\Pool\Run;

require_once __DIR__ . '/../../../bench/autoload.php';

final class PresetTest extends TestCase
{
    /** @dataProvider ceilings */
    #[DataProvider('ceilings')]
    public function testNoMoreRequestsThanItsConnectionsAndWorkersAllowAreExpected(int $preset, int $cores, float $ceiling): void
    {
        self::assertEqualsWithDelta($ceiling, Preset::all()[$preset]->ceiling($cores), 0.5);
    }

    public static function ceilings(): iterable
    {
        // The longest of ten queries of 1 to 10 ms takes 9.51 ms on average.
        yield 'ten queries: 64 connections' => [1, 2, 64 / 0.00950857];
        yield 'CPU: four workers on two cores compute by the clock' => [3, 2, 4 / 0.02];
        yield 'CPU: with many workers its 16 connections' => [3, 16, 16 / 0.02];
        yield 'slow connect: 64 connections' => [4, 2, 64 / 0.001];
    }

    public function testThePageShowsRatesBesideTheCeilingAndWhatThePoolIsWorth(): void
    {
        [, , $off, $on] = Preset::all();
        $runs = [];
        foreach ([[$off, 900], [$off, 1_100], [$on, 1_500], [$on, 1_700]] as [$preset, $requests]) {
            $runs[] = Run::finished($preset, 2, self::load($requests), 9.0, 10.0);
        }
        $runs[] = Run::failed($on, 2, 'it did not start', '/dev/null');
        $results = new Results('a machine', ['php' => PHP_VERSION], $runs);
        $file = tempnam(sys_get_temp_dir(), 'weft-bench');
        $results->save($file);
        $markdown = Results::load($file)->markdown();

        self::assertMatchesRegularExpression('/^\| 20 ms of CPU, pool off +\| +100 \(90–110\) \| +50 % \| +200 \|/m', $markdown['table']);
        self::assertMatchesRegularExpression('/^\| 20 ms of CPU, pool on \(1 of 3 failed\) \| +160 \(150–170\) \| +80 % \| +200 \|/m', $markdown['table']);
        self::assertMatchesRegularExpression('/^\| 20 ms of CPU +\| +1\.60 \| +1\.76 \|$/m', $markdown['ratios']);

        $template = dirname(__DIR__, 3) . '/bench/pool/README.template.md';
        (new Page($template, "$file.md"))->make($markdown + ['machine' => $results->machine, 'versions' => Page::versions($results->versions)], false);
        self::assertStringContainsString($markdown['ratios'], (string) file_get_contents("$file.md"));
        array_map(unlink(...), [$file, "$file.md"]);
    }

    private static function load(int $requests): Load
    {
        return new Load($requests, 10.0, Latency::of(range(1, 100), 1.0), 0);
    }
}
