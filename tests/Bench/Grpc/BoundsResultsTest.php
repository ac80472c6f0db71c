<?php

declare(strict_types=1);

namespace Weft\Tests\Bench\Grpc;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bench\Grpc\BoundsResults;

require_once __DIR__ . '/../../../bench/autoload.php';

final class BoundsResultsTest extends TestCase
{
    private const LATENCY = ['p50' => 0.1, 'p99' => 1.0, 'p99.9' => 2.0, 'p100' => 90.0];
    private const FACTS = [
        'streams' => [['streams' => 8, 'rps' => 1_000.0, 'latency_ms' => self::LATENCY]],
        'tail' => [
            ['system' => 'weft', 'full_rps' => 1_000.0, 'rps' => 700.0, 'at_a_time' => 1_000, 'latency_ms' => self::LATENCY],
            ['system' => 'go', 'full_rps' => 500.0, 'rps' => 350.0, 'at_a_time' => 1_000, 'latency_ms' => ['p99' => 30.0] + self::LATENCY],
        ],
        'talk' => ['messages' => 1_000_000, 'seconds' => 10.0, 'early_kib' => 30_000, 'late_kib' => 31_000, 'server_before_mib' => 40.0, 'server_after_mib' => 41.0],
        'link' => [
            ['round_trip_ms' => 50.0, 'stream_window' => 262_144, 'near_upload_mb_s' => 500.0, 'near_download_mb_s' => 500.0, 'far_upload_mb_s' => 5.0, 'far_download_mb_s' => 5.0],
            ['round_trip_ms' => 50.0, 'stream_window' => 16_777_216, 'near_upload_mb_s' => 500.0, 'near_download_mb_s' => 100.0, 'far_upload_mb_s' => 101.0, 'far_download_mb_s' => 81.0],
        ],
        'idle' => ['connections' => 10_000, 'kib_each' => 19.9],
        'soak' => ['seconds' => 60, 'calls' => 1_000, 'resident_mib' => [30.0, 40.0, 41.0, 42.0]],
    ];

    public function testABoundThatIsKeptIsNoFailure(): void
    {
        $results = new BoundsResults('a machine', [], self::FACTS);

        self::assertSame([], $results->failures());
        self::assertMatchesRegularExpression('/^\| 10,000 idle connections +\| +19.9 KiB each \| +at most 20 KiB \| yes \|$/m', $results->section());
        self::assertMatchesRegularExpression('/^\| 8 +\| +1,000 \| +0.10 \| +1.00 \| +2.00 \| +90.00 \|$/m', $results->section());
    }

    public function testAPartThatCouldNotBeMeasuredIsNotKept(): void
    {
        $file = (string) tempnam(sys_get_temp_dir(), 'weft-bounds');
        (new BoundsResults('a machine', [], self::FACTS, ['talk' => 'the client is gone']))->save($file);
        $results = BoundsResults::load($file);
        unlink($file);

        self::assertSame(['talk: failed: the client is gone, wanted to be measured'], $results->failures());
        self::assertContains(['talk', 'failed: the client is gone', 'to be measured', 'NO'], $results->toArray()['bounds']);
    }

    /** @dataProvider missed */
    #[DataProvider('missed')]
    public function testABoundThatIsNotKeptIsNamed(string $failure, string $part, array $changed): void
    {
        $facts = self::FACTS;
        $facts[$part] = array_replace_recursive($facts[$part], $changed);

        self::assertSame([$failure], (new BoundsResults('a machine', [], $facts))->failures());
    }

    /** @return iterable<array{string, string, array<array-key, mixed>}> */
    public static function missed(): iterable
    {
        yield ['no step of 40 ms with 8 on one connection: p99.9 40.00 ms, wanted below 35 ms', 'streams', [['latency_ms' => ['p99.9' => 40.0]]]];
        yield ['weft at 70% of 1,000 calls/s, 1,000 at a time: p99 11.00 ms, wanted below 10 ms', 'tail', [['latency_ms' => ['p99' => 11.0]]]];
        yield ['1,000,000 messages each way in one call, 10.0 s: server 40.0 → 45.0 MiB, client 29.3 → 30.3 MiB, wanted at most 4 MiB more', 'talk', ['server_after_mib' => 45.0]];
        yield ['upload over a round trip of 50 ms, window of 16,384 KiB: 99.0 MB/s; 500.0 without the distance, wanted 100 MB/s, or 80%', 'link', [1 => ['far_upload_mb_s' => 99.0]]];
        yield ['10,000 idle connections: 20.1 KiB each, wanted at most 20 KiB', 'idle', ['kib_each' => 20.1]];
        yield ['60 s of calls of every kind, 1,000 of them: 40.0 → 45.0 MiB, wanted at most 4 MiB more', 'soak', ['resident_mib' => [3 => 45.0]]];
    }
}
