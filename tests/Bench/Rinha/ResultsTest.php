<?php

declare(strict_types=1);

namespace Weft\Tests\Bench\Rinha;

use PHPUnit\Framework\TestCase;
use Weft\Bench\BenchmarkException;
use Weft\Bench\Rinha\Inserts;
use Weft\Bench\Rinha\Options;
use Weft\Bench\Rinha\Results;
use Weft\Bench\Rinha\Run;
use Weft\Bench\Rinha\SimulationLog;

require_once __DIR__ . '/../../../bench/autoload.php';

final class ResultsTest extends TestCase
{
    private const PART = [
        'name' => 'nginx', 'cpus' => 0.21, 'memory_limit_mib' => 600, 'cpu_s' => 14.8, 'mean_cpus' => 0.07,
        'throttled_s' => 0.0, 'rss_mib' => 13.9, 'peak_memory_mib' => 10.2,
    ];

    private string $file;

    protected function setUp(): void
    {
        $this->file = sys_get_temp_dir() . '/weft-rinha-results-' . bin2hex(random_bytes(4));
    }

    protected function tearDown(): void
    {
        @unlink($this->file);
    }

    public function testEachWayToInsertHasItsSummaryAndItsTables(): void
    {
        $this->results($this->measured(Inserts::Single, 8), $this->measured(Inserts::Shared, 3))->save($this->file);

        $page = array_map(static fn (string $text): string => (string) preg_replace('/ +/', ' ', $text), Results::load($this->file)->markdown());

        self::assertSame(
            "- Inserts one by one: 8 of 8 people stored in 8 transactions, 10 requests, 0 KO, p99 10 ms.\n"
                . '- Inserts that share statements: 8 of 8 people stored in 3 transactions, 10 requests, 0 KO, p99 10 ms.',
            $page['summary'],
        );
        self::assertSame('within 1.5 CPU and 3.0 GB', $page['limits']);
        self::assertStringContainsString('| Weft, inserts one by one | here | 10 | 0 | 8 | 0 | 1000.0 | 5.5 | 5 | 8 | 10 | 10 | 10 |', $page['published']);
        self::assertStringContainsString('| Weft, inserts that share statements | here |', $page['published']);
        self::assertSame(2, substr_count($page['requests'], '| create | 10 |'));
        self::assertSame(2, substr_count($page['parts'], '| nginx | 0.21 | 0.07 | 14.8 |'));
    }

    public function testOneMissingPersonInEitherRunIsAFailure(): void
    {
        self::assertTrue($this->results($this->measured(Inserts::Single, 8))->isPerfect());
        self::assertFalse($this->results($this->measured(Inserts::Single, 8), $this->measured(Inserts::Shared, 3, people: 7))->isPerfect());
    }

    public function testBothWaysRunUnlessOneIsNamed(): void
    {
        self::assertSame([Inserts::Single, Inserts::Shared], Options::parse([], '/')->inserts);
        self::assertSame([Inserts::Shared], Options::parse(['--only=shared'], '/')->inserts);
        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage("there are no inserts 'batch', there are: single shared");
        Options::parse(['--only=batch'], '/');
    }

    private function results(Run ...$runs): Results
    {
        return new Results('a box', ['php' => '8.2'], true, 1.0, $runs);
    }

    private function measured(Inserts $inserts, int $transactions, int $people = 8): Run
    {
        $lines = array_map(static fn (int $i): string => "REQUEST\t\tcreate\t1000\t" . 1000 + $i . "\tOK\t ", range(1, 10));
        file_put_contents($this->file, implode("\n", $lines) . "\n");

        return Run::of($inserts, SimulationLog::read($this->file), $people, $transactions, 8, [self::PART]);
    }
}
