<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\TestCase;
use Weft\Bench\Report\Summary;
use Weft\Bench\Report\Tile;

require_once __DIR__ . '/../../bench/autoload.php';

/** Which of its loads a benchmark's row speaks of. */
final class SummaryTest extends TestCase
{
    public function testTheLeastFavourableGrpcLoadOfABusyCoreCounts(): void
    {
        $runs = [
            ...self::calls('Get', 'h2load', 1, weft: 8.0, go: 18.0),
            ...self::calls('Get', 'h2load', 8, weft: 10.0, go: 16.0),
            ...self::calls('List', 'h2load', 8, weft: 10.0, go: 17.0),
            ...self::calls('Get', 'ghz', 8, weft: 20.0, go: 26.0),
            ...self::calls('List', 'ghz', 50, weft: 20.0, go: 30.0),
            ...self::calls('List', 'ghz', 1, weft: 20.0, go: 10.0, load: '1,000 calls'),
        ];

        $tile = self::tile('grpc', $runs);

        self::assertSame(['1.60×', 'the calls of go per CPU second'], [$tile->value, $tile->claim]);
        self::assertStringContainsString('Get 10.0 µs of CPU against 16.0 µs, List 10.0 µs of CPU against 17.0 µs', $tile->detail);
        self::assertStringEndsWith('called by ghz, which leaves the server waiting, 1.30× to 1.50×', $tile->detail);
    }

    public function testAGrpcPeerThatIsNotTheYardstickStandsBeside(): void
    {
        $tonic = array_map(
            static fn (array $run): array => ['system' => $run['system'] === 'go' ? 'tonic' : 'weft'] + $run,
            [...self::calls('Get', 'h2load', 8, weft: 10.0, go: 8.0), ...self::calls('List', 'h2load', 8, weft: 10.0, go: 9.0)],
        );

        $tile = self::tile('grpc', [...$tonic, ...self::calls('Get', 'h2load', 8, weft: 10.0, go: 16.0), ...self::calls('List', 'h2load', 8, weft: 10.0, go: 18.0)]);

        self::assertSame(['1.60×', 'the calls of go per CPU second'], [$tile->value, $tile->claim]);
        self::assertStringEndsWith('; against tonic, in Rust, 0.80×', $tile->detail);
    }

    public function testWithoutABusyCoreThereIsNothingToSayOfGrpc(): void
    {
        self::assertNull(self::tile('grpc', self::calls('Get', 'ghz', 8, weft: 20.0, go: 26.0)));
    }

    public function testARunThatFailedDoesNotCount(): void
    {
        $failed = ['system' => 'go', 'cpu_us_per_call' => null, 'failed' => 'no Go'];
        $runs = [
            ...self::calls('Get', 'h2load', 8, weft: 10.0, go: 20.0),
            ...self::calls('List', 'h2load', 8, weft: 10.0, go: 20.0),
            $failed + self::calls('Get', 'h2load', 1, weft: 10.0, go: 1.0)[1],
        ];

        self::assertSame('2.00×', self::tile('grpc', $runs)?->value);
    }

    public function testTheSecondsOfTheBusAreRoundedAsOnItsPage(): void
    {
        $run = static fn (string $system, float $seconds): array => ['system' => $system, 'mode' => 'plain', 'transport' => 'rabbitmq', 'rows' => 100_000, 'seconds' => $seconds];

        self::assertStringEndsWith('drained in 39.52 s against 49.10 s', self::tile('bus', [$run('weft', 39.52), $run('go', 49.095)])?->detail);
    }

    public function testHttpHelloWithSixtyFourConnectionsCountsAndTheOtherLoadsStandBeside(): void
    {
        $cost = static fn (string $system, string $case, int $connections, float $cost): array => [
            'system' => $system, 'case' => $case, 'protocol' => 'http/1.1', 'connections' => $connections, 'cpu_us_per_request' => $cost,
        ];

        $tile = self::tile('http', [
            $cost('weft', 'hello', 1, 1.0), $cost('go', 'hello', 1, 9.0),
            $cost('weft', 'hello', 64, 10.0), $cost('go', 'hello', 64, 14.0), $cost('node', 'hello', 64, 40.0),
            $cost('weft', 'query', 64, 30.0), $cost('weft-pipelined', 'query', 64, 20.0), $cost('go', 'query', 64, 36.0),
        ]);

        self::assertSame(['1.40×', 'the requests of go per CPU second, with 64 connections'], [$tile->value, $tile->claim]);
        self::assertStringEndsWith('with 1 and 64 connections: hello 9.00×, 1.40×; a query –, 1.20×, with shared round trips –, 1.80×', $tile->detail);
    }

    public function testBothPublishedGainsOfThePoolAreNamed(): void
    {
        $run = static fn (string $preset, bool $pool, float $rps): array => ['preset' => $preset, 'pool' => $pool, 'rps' => $rps, 'errors' => 0];

        $tile = self::tile('pool', [
            $run('10 queries', false, 300.0), $run('10 queries', true, 1_500.0), $run('20 ms of CPU', false, 100.0), $run('20 ms of CPU', true, 115.0),
        ]);

        self::assertSame('5.0×', $tile->value);
        self::assertStringContainsString('a query and 20 ms of computing: 1.15×; 0 errors', $tile->detail);
    }

    /** @param list<array<string, mixed>> $runs */
    private static function tile(string $benchmark, array $runs): ?Tile
    {
        return (new Summary([$benchmark => ['runs' => $runs]]))->tiles()[$benchmark];
    }

    /** @return list<array<string, mixed>> of weft and of go */
    private static function calls(string $call, string $tool, int $connections, float $weft, float $go, string $load = 'long'): array
    {
        $run = static fn (string $system, float $cost): array => [
            'system' => $system,
            'preset' => "$call, 100 at a time on $connections connections, $load, $tool",
            'tool' => $tool,
            'call' => $call,
            'concurrency' => 100,
            'connections' => $connections,
            'cpu_us_per_call' => $cost,
        ];

        return [$run('weft', $weft), $run('go', $go)];
    }
}
