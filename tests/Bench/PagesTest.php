<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\TestCase;
use Weft\Bench\BenchmarkException;
use Weft\Bench\Page;

require_once __DIR__ . '/../../bench/autoload.php';

final class PagesTest extends TestCase
{
    public function testEveryPageIsWhatThePublishedResultsMakeOfIt(): void
    {
        exec(escapeshellarg(PHP_BINARY) . ' ' . escapeshellarg(dirname(__DIR__, 2) . '/bench/render') . ' --check 2>&1', $output, $code);

        self::assertSame(0, $code, implode("\n", $output) . "\nmake bench-render writes them");
    }

    public function testTheWaitsThatTheFirstPagesNameAreThoseOfThePublishedRun(): void
    {
        $root = dirname(__DIR__, 2);
        /** @var list<array{system: string, client: string, tasks: int, wait_ms: int, seconds: float}> $waits */
        $waits = json_decode((string) file_get_contents("$root/bench/hooks/results.json"), true, flags: JSON_THROW_ON_ERROR)['waits'];
        $range = static function (string $system, string $format) use ($waits): string {
            $ofLibraries = static fn (array $wait): bool => $wait['system'] === $system && $wait['tasks'] === 10 && $wait['wait_ms'] === 200
                && in_array($wait['client'], ['PDO pgsql', 'PDO mysql', 'mysqli', 'curl', 'Guzzle', 'phpredis'], true);
            $seconds = array_column(array_filter($waits, $ofLibraries), 'seconds');
            self::assertCount(6, $seconds);

            return implode(' to ', array_unique([sprintf($format, min($seconds)), sprintf($format, max($seconds))]));
        };

        foreach (['README.md', 'docs/index.md'] as $page) {
            $text = (string) preg_replace('/\s+/', ' ', (string) file_get_contents("$root/$page"));
            self::assertStringContainsString("take {$range('weft', '%.2f')} s together", $text, $page);
            self::assertMatchesRegularExpression('/in plain PHP \[?' . preg_quote($range('blocking', '%.1f'), '/') . '/', $text, $page);
        }
    }

    public function testAPageThatWasEditedByHandIsFound(): void
    {
        $page = tempnam(sys_get_temp_dir(), 'weft-bench');
        file_put_contents($page, "before\n<!-- bench -->\nold\n<!-- /bench -->\nafter\n");

        self::assertSame(1, Page::block($page, 'bench', "new $1\n", true));
        self::assertSame(0, Page::block($page, 'bench', "new $1\n", false));
        self::assertSame("before\n<!-- bench -->\nnew $1\n<!-- /bench -->\nafter\n", file_get_contents($page));
        self::assertSame(0, Page::block($page, 'bench', "new $1\n", true));
        unlink($page);
    }

    public function testAPageWithoutAPlaceForResultsIsRefused(): void
    {
        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage('has no place between <!-- bench --> and <!-- /bench -->');

        Page::block(dirname(__DIR__, 2) . '/LICENSE', 'bench', '', true);
    }

    public function testADirectoryWithoutResultsIsRefused(): void
    {
        $program = dirname(__DIR__, 2) . '/bench/report/build';
        exec(escapeshellarg(PHP_BINARY) . ' ' . escapeshellarg($program) . ' --from=' . escapeshellarg(__DIR__) . ' 2>&1', $output, $code);

        self::assertSame([2, 'bench/report/build: there are no results in ' . __DIR__ . ': run `make bench`'], [$code, implode("\n", $output)]);
    }

    public function testAPageThatAsksForSomethingUnknownIsRefused(): void
    {
        $template = tempnam(sys_get_temp_dir(), 'weft-bench');
        file_put_contents($template, 'a {{b}}');
        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage("$template asks for b");

        try {
            (new Page($template, "$template.md"))->make(['a' => '1'], false);
        } finally {
            unlink($template);
        }
    }
}
