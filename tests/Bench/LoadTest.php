<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\TestCase;
use Weft\Bench\BenchmarkException;
use Weft\Bench\CommandLine;
use Weft\Bench\Load\IdleConnections;
use Weft\Bench\Load\Latency;
use Weft\Bench\Load\Tool;
use Weft\Bench\Load\Wrk;
use Weft\Bench\Percentile;
use Weft\Bench\Port;
use Weft\Bench\Server;
use Weft\Bench\TimedOut;

require_once __DIR__ . '/../../bench/autoload.php';

final class LoadTest extends TestCase
{
    private ?Server $server = null;
    private string $file = '';

    protected function tearDown(): void
    {
        $this->server?->stop();
        array_map(unlink(...), array_filter([$this->file, "{$this->file}.log"], is_file(...)));
    }

    public function testWrkReportsRequestsAndTheAnswersThatWereNotGood(): void
    {
        if (trim((string) shell_exec('command -v wrk')) === '') {
            self::markTestSkipped('wrk is not installed: scripts/setup bench');
        }
        $port = $this->serve('<?php http_response_code($_SERVER["REQUEST_URI"] === "/bad" ? 500 : 200); header("Content-Length: 1"); echo "x";');

        $good = Wrk::run("http://127.0.0.1:$port/", 2, 1);
        $bad = Wrk::run("http://127.0.0.1:$port/bad", 2, 1);

        self::assertSame(0, $good->errors);
        self::assertGreaterThan(0, $good->requests);
        self::assertGreaterThan(0.9, $good->seconds);
        self::assertLessThan(60.0, $good->seconds, 'seconds, and no other unit');
        $times = array_map($good->latency->at(...), Latency::PERCENTILES);
        self::assertGreaterThan(0.0, $times[0]);
        $ascending = $times;
        sort($ascending);
        self::assertSame($ascending, $times, 'a higher percentile is never a shorter time');
        self::assertGreaterThanOrEqual($bad->requests, $bad->errors);
    }

    public function testAServerThatClosesConnectionsHasNoIdleOnes(): void
    {
        $port = $this->serve('<?php echo "x";');

        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage('connection 0 of 2 answered');

        IdleConnections::open($port, '/', 2);
    }

    public function testAToolThatFailsIsReportedWithWhatItPrinted(): void
    {
        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage('exited with code 3: out of luck');

        Tool::output(['sh', '-c', 'echo out of luck >&2; exit 3'], 5.0);
    }

    public function testAToolThatDoesNotEndIsEnded(): void
    {
        $this->expectException(TimedOut::class);
        $this->expectExceptionMessage('sleep 60 did not end within 0.1 s');

        Tool::output(['sleep', '60'], 0.1);
    }

    public function testAPercentileIsTheNearestRank(): void
    {
        self::assertSame(50.0, Percentile::of(range(1, 100), 50));
        self::assertSame(99.0, Percentile::of(range(1, 100), 99));
        self::assertSame(100.0, Percentile::of(range(1, 100), 100));
        self::assertSame(7.0, Percentile::of([7], 1));
        self::assertSame(0.0, Percentile::of([], 50));
    }

    public function testLatencyIsWrittenByPercentileInMilliseconds(): void
    {
        $latency = Latency::of(range(1, 1000), 0.001);

        self::assertSame(
            ['p10' => 0.1, 'p25' => 0.25, 'p50' => 0.5, 'p75' => 0.75, 'p90' => 0.9, 'p95' => 0.95, 'p99' => 0.99, 'p99.9' => 0.999, 'p100' => 1.0],
            $latency->toArray(),
        );
        self::assertSame(0.0, (new Latency([]))->at(99));
    }

    public function testAnUnknownOptionIsRefusedWithTheKnownOnes(): void
    {
        $this->expectExceptionMessage('unknown option --connection=1, there are: --connections --short');

        CommandLine::parse(['--connection=1'], ['connections' => '1', 'short' => '']);
    }

    public function testOptionsHaveDefaults(): void
    {
        $line = CommandLine::parse(['--short', '--connections=1,64'], ['connections' => '1', 'short' => '', 'only' => '']);

        self::assertTrue($line->flag('short'));
        self::assertSame([1, 64], $line->positives('connections'));
        self::assertSame([], $line->names('only'));
    }

    private function serve(string $script): int
    {
        $this->file = tempnam(sys_get_temp_dir(), 'weft-bench');
        file_put_contents($this->file, $script);
        $port = Port::free();
        $this->server = Server::start([PHP_BINARY, '-n', '-S', "127.0.0.1:$port", $this->file], [], "{$this->file}.log", $port);

        return $port;
    }
}
