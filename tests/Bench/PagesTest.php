<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\TestCase;
use Weft\Bench\BenchmarkException;
use Weft\Bench\Page;

require_once __DIR__ . '/../../bench/autoload.php';

final class PagesTest extends TestCase
{
    /** @dataProvider benchmarks */
    public function testAPublishedPageIsWhatItsResultsMakeOfIt(string $benchmark): void
    {
        exec(escapeshellarg(PHP_BINARY) . ' ' . escapeshellarg(dirname(__DIR__, 2) . "/bench/$benchmark/render") . ' --check 2>&1', $output, $code);

        self::assertSame(0, $code, implode("\n", $output));
    }

    public static function benchmarks(): iterable
    {
        yield ['http'];
        yield ['rinha'];
    }

    public function testAPageThatAsksForSomethingUnknownIsRefused(): void
    {
        $template = tempnam(sys_get_temp_dir(), 'weft-bench');
        file_put_contents($template, 'a {{b}}');
        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage("$template asks for b");

        (new Page($template, "$template.md"))->make(['a' => '1'], false);
    }
}
