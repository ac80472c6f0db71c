<?php

declare(strict_types=1);

namespace Weft\Tests\Bench\Guard;

use PHPUnit\Framework\TestCase;
use Weft\Bench\BenchmarkException;
use Weft\Bench\Guard\Callgrind;
use Weft\Bench\Guard\Limits;
use Weft\Bench\Guard\Strace;

require_once __DIR__ . '/../../../bench/autoload.php';

/** The guard fails for what rose by more than 3 % and 0.05, and for nothing else. */
final class GuardTest extends TestCase
{
    private string $file;

    protected function setUp(): void
    {
        $this->file = (string) tempnam(sys_get_temp_dir(), 'weft-guard-');
    }

    protected function tearDown(): void
    {
        unlink($this->file);
    }

    public function testOnlyACountAboveItsToleranceIsExceeded(): void
    {
        $limits = ['hello' => ['instructions' => 1000.0, 'allocations' => 10.0, 'system calls' => 2.0]];

        self::assertSame([], (new Limits(['hello' => ['instructions' => 1030.0, 'allocations' => 5.0, 'system calls' => 2.0]], $limits))->exceeded());
        self::assertSame(
            ['hello: instructions rose from 1000 to 1031, by 3.1 %', 'json: instructions have no limit; --write sets it'],
            (new Limits(['hello' => ['instructions' => 1031.0], 'json' => ['instructions' => 1.0]], $limits))->exceeded(),
        );
    }

    public function testACountOfNextToNothingMayRiseByALittle(): void
    {
        $limits = ['message' => ['system calls' => 0.02]];

        self::assertSame([], (new Limits(['message' => ['system calls' => 0.06]], $limits))->exceeded());
        self::assertSame(['message: system calls rose from 0.02 to 0.08, by 300.0 %'], (new Limits(['message' => ['system calls' => 0.08]], $limits))->exceeded());
    }

    public function testInstructionsAndAllocationsOfCallgrindAreSummed(): void
    {
        file_put_contents($this->file, <<<'OUT'
            events: Ir
            fn=(1) work
            10 5
            cfn=(2) malloc
            calls=3 0
            10 30
            cob=(4) /lib/libc.so
            cfn=(3) free
            calls=7 0
            11 70
            fn=(5) more
            cfn=(2)
            calls=4 0
            12 40
            totals: 145
            OUT);

        self::assertSame(['instructions' => 145, 'allocations' => 7], Callgrind::read($this->file));
    }

    public function testAFileThatCallgrindHasNotFinishedIsAFailure(): void
    {
        file_put_contents($this->file, "events: Ir\nfn=(1) work\n");

        $this->expectException(BenchmarkException::class);
        Callgrind::read($this->file);
    }

    public function testTheSumOfStraceIsRead(): void
    {
        file_put_contents($this->file, <<<'OUT'
            % time     seconds  usecs/call     calls    errors syscall
            ------ ----------- ----------- --------- --------- ----------------
             60.00    0.000060           6        10         2 recvfrom
             40.00    0.000040           4        10           sendto
            ------ ----------- ----------- --------- --------- ----------------
            100.00    0.000100           5        20         2 total
            OUT);

        self::assertSame(20, Strace::total($this->file));
    }
}
