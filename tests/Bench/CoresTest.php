<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\TestCase;
use Weft\Bench\BenchmarkException;
use Weft\Bench\Cores;
use Weft\Bench\Machine;

require_once __DIR__ . '/../../bench/autoload.php';

final class CoresTest extends TestCase
{
    public function testAServerIsPutBesideTheLoadWithAllThatItStartsAndBackAgain(): void
    {
        if (Machine::cores() < 2) {
            self::markTestSkipped('needs two cores');
        }
        // Each line that it reads starts another process.
        $server = proc_open(['sh', '-c', 'started=; while read -r _; do sleep 600 & started="$started $!"; echo $!; done; kill $started'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
        $child = static function () use ($pipes): int {
            fwrite($pipes[0], "\n");

            return (int) fgets($pipes[1]);
        };
        $pid = proc_get_status($server)['pid'];
        $early = $child();
        $before = self::affinity($pid);
        try {
            $restore = Cores::besideLoad($pid);
            $late = $child();

            self::assertSame(['1', '1', '1'], array_map(self::affinity(...), [$pid, $early, $late]));
            $restore();
            self::assertSame([$before, $before, $before], array_map(self::affinity(...), [$pid, $early, $late]));
        } finally {
            fclose($pipes[0]);
            proc_close($server);
        }
    }

    public function testAProcessThatHasEndedIsNamed(): void
    {
        if (Machine::cores() < 2) {
            self::markTestSkipped('needs two cores');
        }
        $ended = proc_open(['true'], [], $pipes);
        $pid = proc_get_status($ended)['pid'];
        proc_close($ended);

        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage("process $pid has ended");

        Cores::besideLoad($pid);
    }

    private static function affinity(int $pid): string
    {
        preg_match('/^Cpus_allowed_list:\s+(\S+)$/m', (string) file_get_contents("/proc/$pid/status"), $line);

        return $line[1];
    }
}
