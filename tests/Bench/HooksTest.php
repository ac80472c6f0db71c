<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\TestCase;
use Weft\Bench\BenchmarkException;
use Weft\Bench\Hooks\Options;
use Weft\Bench\Hooks\Results;

require_once __DIR__ . '/../../bench/autoload.php';

final class HooksTest extends TestCase
{
    public function testEverythingIsMeasuredByDefault(): void
    {
        $options = self::parse();

        self::assertSame(['waits', 'cost', 'http'], $options->parts);
        self::assertSame(['query', 'call'], $options->loads);
        self::assertSame([8, 64, 256], $options->connections);
        self::assertSame(['weft', 'php-fpm', 'swoole'], $options->only);
        self::assertSame(['load', 1], [$options->database, $options->workers]);
    }

    public function testOnePartOneLoadAndSomeServersCanBeMeasuredAlone(): void
    {
        $options = self::parse('--parts=http', '--loads=query', '--connections=8', '--only=weft,swoole', '--seconds=3');

        self::assertSame([['http'], ['query'], [8], ['weft', 'swoole'], 3], [$options->parts, $options->loads, $options->connections, $options->only, $options->seconds]);
    }

    public function testAPartThatDoesNotExistIsRefused(): void
    {
        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage('--parts has no https, there are: waits cost http');

        self::parse('--parts=https');
    }

    public function testPartsThatWereNotMeasuredHaveNoTable(): void
    {
        $row = ['system' => 'weft', 'load' => 'query', 'connections' => 8, 'per_s' => [1.0], 'cpu_us' => [1.0], 'p50_ms' => [1.0], 'p99_ms' => [1.0], 'errors' => 0];

        self::assertSame(['Servers'], array_keys((new Results('machine', [], [], [], [$row]))->tables()));
    }

    private static function parse(string ...$arguments): Options
    {
        return Options::parse(['--extension=' . __FILE__, ...array_values($arguments)], dirname(__DIR__, 2));
    }
}
