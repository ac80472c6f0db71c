<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\TestCase;
use Weft\Bench\Report\Costs;
use Weft\Bench\Report\Sources;
use Weft\Tests\Bench\Fixtures\Results;

require_once __DIR__ . '/../../bench/autoload.php';
require_once __DIR__ . '/Fixtures/Results.php';

/** The tables of docs/explanation/performance.md. */
final class CostsTest extends TestCase
{
    public function testEveryBenchmarkSaysWhoTakesHowMuchOfTheProcessor(): void
    {
        $directory = sys_get_temp_dir() . '/weft-costs-' . bin2hex(random_bytes(4));
        mkdir($directory);
        Results::write($directory);
        $tables = array_map(self::withoutPadding(...), (new Costs(Sources::directory($directory)->load()))->tables());
        exec('rm -rf ' . escapeshellarg($directory));

        // 4 s for 1,000 rows, of which the process has 40 %, the broker 30 % and the database 20 %.
        self::assertStringContainsString('| weft plain | 1,600 | 1,200 | 800 | 4,000 | 45 % |', $tables['bus-cpu']);
        self::assertStringContainsString('| weft embedded | 400 | – | – | 1,000 | 20 % |', $tables['bus-cpu']);
        self::assertStringStartsWith('| CPU µs | weft | go | node | php-fpm |', $tables['http-cpu']);
        self::assertStringContainsString('| hello, http/1.1 | 10.0 | 12.5 | – | 60.0 |', $tables['http-cpu']);
        self::assertStringContainsString('| Get, 8 connections | 11.0 | 14.0 | 16.5 | 70.0 |', $tables['grpc-cpu']);
        self::assertStringNotContainsString('50,000', $tables['grpc-cpu']);
        self::assertStringContainsString('| 10 queries, pool on | 3,000 | – |', $tables['pool-cpu']);
        self::assertStringContainsString('| nginx | 12,300 | 19 % | 12,300 | 19 % |', $tables['rinha-cpu']);
    }

    public function testABenchmarkWithoutResultsHasNoTable(): void
    {
        self::assertSame([], (new Costs([]))->tables());
    }

    public function testAContenderWithoutAFinishedRunHasNoNumbers(): void
    {
        $run = ['system' => 'go', 'mode' => 'plain', 'transport' => 'rabbitmq', 'persistent' => false, 'confirms' => false, 'failed' => 'no Go'];

        $tables = (new Costs(['bus' => ['machine' => 'a box, 2 cores', 'runs' => [$run]]]))->tables();

        self::assertStringContainsString('| go | – | – | – | – | – |', self::withoutPadding($tables['bus-cpu']));
    }

    private static function withoutPadding(string $table): string
    {
        return (string) preg_replace('/ +/', ' ', $table);
    }
}
