<?php

declare(strict_types=1);

namespace Weft\Tests;

use PHPUnit\Framework\TestCase;
use Weft\App;
use Weft\Http;
use Weft\Runtime;
use Weft\Sql;
use Weft\Workers;

/** A program that runs without the extension names what is missing, at whichever class or function of Weft it begins. */
final class WithoutExtensionTest extends TestCase
{
    public function testEveryPublicClassAndFunctionNamesTheExtension(): void
    {
        $directory = \sys_get_temp_dir() . '/weft-without-' . \getmypid();
        \mkdir($directory);
        try {
            $run = Execution::of([\PHP_BINARY, '-n', '-d', 'display_errors=stderr', '-r', <<<'PHP'
                error_reporting(E_ALL & ~E_DEPRECATED);
                require $argv[1];
                $report = Weft\Tests\WithoutExtension::report($argv[2]);
                file_put_contents('report.json', json_encode($report, JSON_THROW_ON_ERROR));
                PHP, \dirname(__DIR__) . '/autoload.php', \dirname(__DIR__) . '/src'], directory: $directory);
            self::assertSame(0, $run->exitCode, $run->errors . $run->output);
            $report = \json_decode((string) \file_get_contents("$directory/report.json"), true);
        } finally {
            \exec('rm -r ' . \escapeshellarg($directory));
        }

        self::assertSame([], $report['raw']);
        self::assertGreaterThan(1_000, $report['calls']);
        $classes = \array_map(static fn(string $label): string => \strtok($label, ':'), $report['refused']);
        $entries = ['weft\run', 'weft\delay', App::class, Workers\Worker::class, Runtime\Realm::class, Http\Server::class, Sql\Database::class];
        self::assertSame([], \array_diff($entries, $classes));
    }
}
