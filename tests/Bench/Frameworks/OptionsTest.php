<?php

declare(strict_types=1);

namespace Weft\Tests\Bench\Frameworks;

use PHPUnit\Framework\TestCase;
use Weft\Bench\BenchmarkException;
use Weft\Bench\Frameworks\Options;

require_once __DIR__ . '/../../../bench/autoload.php';

/** Peers that Debian lacks take part where the environment names them. */
final class OptionsTest extends TestCase
{
    private const VARIABLES = ['SWOOLE_EXTENSION', 'FRANKENPHP', 'ROADRUNNER', 'ROADRUNNER_AUTOLOAD'];

    /** @var array<string, string|false> */
    private array $before = [];

    protected function setUp(): void
    {
        foreach (self::VARIABLES as $name) {
            $this->before[$name] = getenv($name);
            putenv($name);
        }
    }

    protected function tearDown(): void
    {
        foreach ($this->before as $name => $value) {
            putenv($value === false ? $name : "$name=$value");
        }
    }

    public function testPeersThatTheEnvironmentDoesNotNameTakeNoPart(): void
    {
        $options = self::parse();

        self::assertSame([null, null, null], [$options->swoole, $options->frankenPhp, $options->roadRunner]);
        self::assertSame(['swoole (SWOOLE_EXTENSION)', 'frankenphp (FRANKENPHP)', 'roadrunner (ROADRUNNER, ROADRUNNER_AUTOLOAD)'], $options->absent());
    }

    public function testRoadRunnerIsABinaryAndALibrary(): void
    {
        putenv('ROADRUNNER=' . PHP_BINARY);
        putenv('ROADRUNNER_AUTOLOAD=' . __FILE__);

        $options = self::parse();

        self::assertSame(PHP_BINARY, $options->roadRunner);
        self::assertSame(['swoole (SWOOLE_EXTENSION)', 'frankenphp (FRANKENPHP)'], $options->absent());
    }

    public function testRoadRunnerWithoutItsLibraryIsRefused(): void
    {
        putenv('ROADRUNNER=' . PHP_BINARY);

        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage('ROADRUNNER needs ROADRUNNER_AUTOLOAD');

        self::parse();
    }

    public function testALibraryThatIsNotThereIsRefused(): void
    {
        putenv('ROADRUNNER=' . PHP_BINARY);
        putenv('ROADRUNNER_AUTOLOAD=/nonexistent/autoload.php');

        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage('there is no /nonexistent/autoload.php');

        self::parse();
    }

    public function testAPeerThatIsNotThereIsRefused(): void
    {
        putenv('FRANKENPHP=/nonexistent/frankenphp');

        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage('there is no /nonexistent/frankenphp');

        self::parse();
    }

    public function testOneEndpointOfSomeSystemsCanBeMeasuredAlone(): void
    {
        $options = self::parse('--endpoints=page', '--only=weft,roadrunner');

        self::assertSame([['page'], ['weft', 'roadrunner']], [$options->endpoints, $options->only]);
    }

    public function testASystemThatDoesNotExistIsRefused(): void
    {
        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage('--only has no openswoole, there are: weft php-fpm frankenphp roadrunner swoole');

        self::parse('--only=openswoole');
    }

    private static function parse(string ...$arguments): Options
    {
        return Options::parse(['--extension=' . __FILE__, ...array_values($arguments)], dirname(__DIR__, 3));
    }
}
