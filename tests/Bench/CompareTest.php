<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bench\BenchmarkException;
use Weft\Bench\Compare\Comparison;
use Weft\Bench\Compare\Ratio;

require_once __DIR__ . '/../../bench/autoload.php';

final class CompareTest extends TestCase
{
    private string $directory;

    protected function setUp(): void
    {
        $this->directory = sys_get_temp_dir() . '/weft-compare-' . bin2hex(random_bytes(4));
        mkdir($this->directory);
    }

    protected function tearDown(): void
    {
        exec('rm -rf ' . escapeshellarg($this->directory));
    }

    /** Of four and four the lowest of the sixteen ratios may not be left out, of five and five the two lowest on each side may. */
    public function testTheIntervalIsThatOfTheExactRankSumTest(): void
    {
        $four = Ratio::of([1, 1, 1, 1], [2, 3, 4, 5]);
        self::assertSame([3.5, 2.0, 5.0], [$four->estimate, $four->low, $four->high]);

        // wilcox.test(c(101, 102, 103, 104, 105), c(1, 2, 3, 4, 5)) of R has 2 as the critical value: the third of 25 counts.
        $five = Ratio::of([1, 1, 1, 1, 1], [1.1, 1.2, 1.3, 1.4, 1.5]);
        self::assertSame([1.3, 1.1, 1.5], [$five->estimate, $five->low, $five->high]);
        $spread = Ratio::of([1, 2, 4, 8, 16], [32, 64, 128, 256, 512]);
        self::assertSame([32.0, 4.0, 256.0], [$spread->estimate, $spread->low, $spread->high]);
    }

    public function testThreeAndThreeAreTooFew(): void
    {
        self::assertNull(Ratio::of([1, 1, 1], [9, 9, 9]));
        self::assertNull(Ratio::of([1], [9, 9, 9, 9, 9, 9, 9]));
        self::assertNotNull(Ratio::of([1, 1, 1], [9, 9, 9, 9, 9]));
    }

    public function testTheSameNoiseTwiceIsSeldomCalledADifference(): void
    {
        mt_srand(7);
        $draw = static fn (): array => array_map(static fn (): float => 100 + mt_rand(-2000, 2000) / 100, range(1, 5));
        $wrong = 0;
        for ($i = 0; $i < 1000; ++$i) {
            $ratio = Ratio::of($draw(), $draw());
            $wrong += $ratio->low > 1.0 || $ratio->high < 1.0 ? 1 : 0;
        }

        self::assertLessThan(60, $wrong, 'the test is made for 50 in 1,000 at the most');
        self::assertGreaterThan(5, $wrong, 'and does not say nothing');
    }

    public function testASlowerResultIsNamedAndOthersAreNot(): void
    {
        $comparison = new Comparison('http', $this->http([10, 10.1, 10.2, 10.3]), $this->http([12, 12.1, 12.2, 12.3]), 0.03);

        self::assertTrue($comparison->becameWorse());
        $table = $comparison->table(false)->text();
        self::assertMatchesRegularExpression('/^weft, hello, http\/1\.1, 64 +cpu_us_per_request +1\.19\d +1\.1\d+–1\.2\d+ +4, 4 +SLOWER$/m', $table);
        self::assertStringNotContainsString('rps', $table, 'requests per second stayed the same');
    }

    public function testMoreRequestsPerSecondAreNotSlower(): void
    {
        $fast = array_map(static fn (array $run): array => ['rps' => $run['rps'] * 2] + $run, $this->http([10, 10, 10, 10])['runs']);

        $comparison = new Comparison('http', $this->http([10, 10, 10, 10]), ['runs' => $fast] + $this->http([]), 0.03);

        self::assertFalse($comparison->becameWorse());
        self::assertMatchesRegularExpression('/rps +2\.000 .* faster$/m', $comparison->table(false)->text());
    }

    public function testADifferenceWithinTheToleranceIsTheSame(): void
    {
        $comparison = new Comparison('http', $this->http([10, 10.01, 10.02, 10.03]), $this->http([10.2, 10.21, 10.22, 10.23]), 0.03);

        self::assertFalse($comparison->becameWorse());
        self::assertMatchesRegularExpression('/cpu_us_per_request .* same$/m', $comparison->table(true)->text());
    }

    public function testAFullProcessorThatServesMoreIsNotSlower(): void
    {
        $run = static fn (int $requests): array => ['preset' => '10 queries', 'pool' => true, 'cpu_s' => 15.0, 'requests' => $requests];
        $result = static fn (array $runs): array => ['machine' => 'a box', 'runs' => $runs];

        $comparison = new Comparison('pool', $result(array_fill(0, 4, $run(1_000))), $result(array_fill(0, 4, $run(2_000))), 0.03);

        self::assertFalse($comparison->becameWorse());
        self::assertMatchesRegularExpression('/cpu_s \/ requests +0\.500 .* faster$/m', $comparison->table(false)->text());
    }

    public function testMoreMemoryForTheSameTasksIsWorse(): void
    {
        $result = static fn (float $mib): array => ['machine' => 'a box', 'runs' => array_fill(0, 4, [
            'curve' => 'memory', 'series' => 'resident', 'x' => 10, 'y' => $mib, 'less_is_better' => true,
        ])];

        self::assertTrue((new Comparison('scale', $result(10.0), $result(20.0), 0.03))->becameWorse());
        self::assertFalse((new Comparison('scale', $result(20.0), $result(10.0), 0.03))->becameWorse());
    }

    public function testAFailureIsNamedHoweverFewRunsThereAre(): void
    {
        $this->file('old', [10, 10, 10]);
        $new = $this->http([10, 10]);
        $new['runs'][] = ['rps' => null, 'cpu_us_per_request' => null, 'failed' => 'no port'] + $new['runs'][0];
        mkdir("{$this->directory}/new");
        file_put_contents("{$this->directory}/new/http.json", json_encode($new));

        [$code, $output] = $this->compare("{$this->directory}/old", "{$this->directory}/new");

        self::assertSame(1, $code, $output);
        self::assertStringContainsString('FAILS NOW weft, hello, http/1.1, 64: 1 of 3 runs failed, before 0 of 3', $output);
    }

    public function testAnotherNumberOfCommandsIsRefused(): void
    {
        $bus = static fn (int $rows): array => ['machine' => 'a box', 'runs' => [['system' => 'go', 'mode' => 'plain', 'transport' => 'rabbitmq', 'seconds' => 1.0, 'rows' => $rows]]];
        $this->expectExceptionMessage('bus was run with 5,000 commands, and now with 100,000');

        new Comparison('bus', $bus(5_000), $bus(100_000), 0.03);
    }

    public function testResultsOfDifferentMachinesAreRefused(): void
    {
        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage('the results are of different machines: a box, 2 cores, fdatasync 70 µs; another box');

        new Comparison('http', $this->http([1]), ['machine' => 'another box, fdatasync 70 µs', 'runs' => []], 0.03);
    }

    /** @dataProvider outcomes */
    #[DataProvider('outcomes')]
    public function testTheExitCodeSaysWhatCameOut(array $old, array $new, int $code, string $said): void
    {
        [$seen, $output] = $this->compare($this->file('old', $old), $this->file('new', $new));

        self::assertSame($code, $seen, $output);
        self::assertStringContainsString($said, $output);
    }

    public static function outcomes(): iterable
    {
        yield 'slower' => [[10, 10, 10, 10], [20, 20, 20, 20], 1, 'SLOWER'];
        yield 'faster' => [[20, 20, 20, 20], [10, 10, 10, 10], 0, 'faster'];
        yield 'the same' => [[10, 11, 12, 13], [11, 10, 13, 12], 0, '2 of 2 comparisons have enough runs'];
        yield 'too few' => [[10, 10, 10], [20, 20, 20], 2, '0 of 2 comparisons have enough runs'];
    }

    public function testPathsThatAreMissingAreRefused(): void
    {
        [$code, $output] = $this->compare('only-one');
        self::assertSame([2, true], [$code, str_contains($output, 'two paths are needed')], $output);

        [$code, $output] = $this->compare('/nowhere/bus.json', '/nowhere');
        self::assertSame([2, true], [$code, str_contains($output, '/nowhere/bus.json and /nowhere have no results of the same benchmark')], $output);
    }

    /**
     * @param list<float|int> $costs CPU per request of each run
     *
     * @return array<string, mixed>
     */
    private function http(array $costs): array
    {
        $load = ['system' => 'weft', 'case' => 'hello', 'protocol' => 'http/1.1', 'connections' => 64];

        return ['machine' => 'a box, 2 cores, fdatasync 70 µs', 'versions' => [], 'runs' => array_map(
            static fn (float|int $cost): array => $load + ['rps' => 1000.0, 'cpu_us_per_request' => $cost],
            $costs,
        )];
    }

    /** @param list<float|int> $costs */
    private function file(string $directory, array $costs): string
    {
        @mkdir("{$this->directory}/$directory");
        file_put_contents("{$this->directory}/$directory/http.json", json_encode($this->http($costs)));

        return "{$this->directory}/$directory";
    }

    /** @return array{int, string} */
    private function compare(string ...$arguments): array
    {
        $program = dirname(__DIR__, 2) . '/bench/compare';
        exec(implode(' ', array_map(escapeshellarg(...), [PHP_BINARY, $program, ...$arguments])) . ' 2>&1', $output, $code);

        return [$code, implode("\n", $output)];
    }
}
