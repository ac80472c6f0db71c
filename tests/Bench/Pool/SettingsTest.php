<?php

declare(strict_types=1);

namespace Weft\Tests\Bench\Pool;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bench\BenchmarkException;
use Weft\Bench\Pool\Dsn;
use Weft\Bench\Pool\Settings;

require_once __DIR__ . '/../../../bench/autoload.php';

final class SettingsTest extends TestCase
{
    public function testTheDefaultsAreMultiplesOfTheCores(): void
    {
        $settings = Settings::parse([], 16);

        self::assertTrue($settings->flag('pool.enabled'));
        self::assertSame(64, $settings->number('pool.size'));
        self::assertSame(32, $settings->number('pool.minimum_idle'));
        self::assertSame(32, $settings->number('server.worker_num'));
        self::assertSame(16384, $settings->number('server.max_connection'));
        self::assertSame(11111, $settings->number('server.port'));
        self::assertSame(0.01, $settings->seconds('connection.max_query_duration_sec'));
        self::assertSame('mysql:host=mysql;dbname=test', $settings->text('connection.dsn'));
    }

    /** @dataProvider booleans */
    #[DataProvider('booleans')]
    public function testABooleanIsWrittenInSixWays(string $text, bool $expected): void
    {
        self::assertSame($expected, Settings::parse(["--pool.enabled=$text"], 2)->flag('pool.enabled'));
    }

    public static function booleans(): iterable
    {
        yield ['on', true];
        yield ['true', true];
        yield ['1', true];
        yield ['off', false];
        yield ['false', false];
        yield ['0', false];
    }

    /** @dataProvider badArguments */
    #[DataProvider('badArguments')]
    public function testABadArgumentIsExplained(string $argument, string $explanation): void
    {
        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage($explanation);

        Settings::parse([$argument], 2);
    }

    public static function badArguments(): iterable
    {
        yield 'unknown name' => ['--pool.sise=4', 'unknown parameter --pool.sise, there are:'];
        yield 'the valid ones are listed' => ['pool.size=4', "\n  scenario.parallel_queries_execution\n"];
        yield 'boolean' => ['--pool.enabled=maybe', "pool.enabled must be on, off, true, false, 1 or 0, got 'maybe'"];
        yield 'size of nothing' => ['--pool.size=0', "pool.size must be a whole number above 0, got '0'"];
        yield 'fraction' => ['--server.port=1.5', "server.port must be a whole number above 0, got '1.5'"];
        yield 'negative time' => ['--pool.borrowing_timeout_sec=-1', "must be seconds, 0 or above, got '-1'"];
        yield 'no number' => ['--pool.borrowing_timeout_sec=NAN', "got 'NAN'"];
        yield 'endless' => ['--pool.borrowing_timeout_sec=1e999', "got '1e999'"];
        yield 'no value' => ['--pool.size', 'got no value'];
        yield 'the wrong way round' => ['--connection.min_delay_sec=1', 'connection.min_delay_sec (1) must not be above connection.max_delay_sec (0)'];
        yield 'more idle than there may be' => ['--pool.minimum_idle=9', 'pool.minimum_idle (9) must not be above pool.size (8)'];
    }

    public function testTheHelpNamesEveryParameterWithItsDefault(): void
    {
        $help = Settings::usage(2);

        self::assertMatchesRegularExpression('/pool\.size +8 /', $help);
        self::assertSame(26, preg_match_all('/^  (pool|server|scenario|connection)\.\w+ /m', $help));
    }

    public function testADsnOfPdoBecomesAUrl(): void
    {
        self::assertSame('mysql://root@mysql/test?sslmode=disable', Dsn::url('mysql:host=mysql;dbname=test', 'root', ''));
        self::assertSame('postgres://a:b%40@db:5433/x?sslmode=disable', Dsn::url('pgsql:host=db;port=5433;dbname=x', 'a', 'b@'));
        self::assertSame('mysql://u@h/d', Dsn::url('mysql://u@h/d', 'root', ''));
    }

    public function testAnotherDriverIsRefused(): void
    {
        $this->expectExceptionMessage("connection.dsn must begin with mysql: or pgsql:, or be a URL, got 'oci:host=x'");

        Dsn::url('oci:host=x', 'root', '');
    }
}
