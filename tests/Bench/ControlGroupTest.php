<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\TestCase;
use Weft\Bench\ControlGroup;

require_once __DIR__ . '/../../bench/autoload.php';

final class ControlGroupTest extends TestCase
{
    private ControlGroup $group;

    /** Less than a program gets on the busiest machine, which would not be kept from running otherwise. */
    private const CPUS = 0.02;

    protected function setUp(): void
    {
        $group = ControlGroup::create('weft-test-' . getmypid() . bin2hex(random_bytes(3)), self::CPUS, 64 * 1024 ** 2);
        if ($group === null) {
            self::markTestSkipped('this machine allows this user no control groups');
        }
        $this->group = $group;
    }

    protected function tearDown(): void
    {
        isset($this->group) && $this->group->remove();
    }

    public function testAProgramInItGetsItsShareOfAProcessor(): void
    {
        $started = hrtime(true);
        $this->execute('$e = 0; while (getrusage()["ru_utime.tv_sec"] * 1e6 + getrusage()["ru_utime.tv_usec"] < 4e4);');
        $seconds = (hrtime(true) - $started) / 1e9;

        self::assertGreaterThan(0.039, $this->group->cpuSeconds());
        self::assertGreaterThan($this->group->cpuSeconds() * 2, $seconds);
        self::assertGreaterThan(0.0, $this->group->throttledSeconds());
    }

    public function testAProgramInItIsEndedWhenItTakesMoreMemory(): void
    {
        self::assertNotSame(0, $this->execute('ini_set("memory_limit", "-1"); $x = str_repeat("x", 256 << 20); echo strlen($x);'));
        self::assertLessThanOrEqual(64.0, $this->group->peakMemoryMib());
    }

    private function execute(string $code): int
    {
        $command = implode(' ', array_map(escapeshellarg(...), [...$this->group->enter(), PHP_BINARY, '-n', '-r', $code]));
        exec("timeout 120 $command 2>&1", $output, $exit);

        return $exit;
    }
}
