<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Cli\Internal\Processors;

final class OptionsTest extends TestCase
{
    /** @dataProvider badOptions */
    #[DataProvider('badOptions')]
    public function testABadOptionIsRefusedWithTheValueAndWhatItMustBe(string $option, string $complaint): void
    {
        $weft = Weft::run(['run', $option, __FILE__]);

        self::assertSame("weft run: $complaint\n", $weft->errors);
        self::assertSame(2, $weft->exitCode);
    }

    /** @return iterable<string, array{string, string}> */
    public static function badOptions(): iterable
    {
        yield 'no workers' => ['--workers=0', '--workers is "0": it must be an integer of at least 1'];
        yield 'many workers' => ['--workers=many', '--workers is "many": it must be an integer of at least 1'];
        yield 'negative requests' => ['--max-requests=-1', '--max-requests is "-1": it must be an integer of at least 1'];
        yield 'memory' => ['--max-memory=256X', '--max-memory is "256X": it must be a number of bytes, optionally with K, M or G, such as 256M'];
        yield 'more memory than an integer has' => ['--max-memory=9999999999G', '--max-memory is "9999999999G": it must be at most 9223372036854775807 bytes'];
        yield 'more requests than an integer has' => ['--max-requests=9223372036854775808', '--max-requests is "9223372036854775808": it must be at most 9223372036854775807'];
        yield 'age' => ['--max-age=1h', '--max-age is "1h": it must be a number of seconds above 0'];
        yield 'no age' => ['--max-age=0', '--max-age is "0": it must be a number of seconds above 0'];
        yield 'no time to start' => ['--start-timeout=0.0', '--start-timeout is "0.0": it must be a number of seconds above 0'];
        yield 'no time to drain' => ['--drain-timeout=0', '--drain-timeout is "0": it must be a number of seconds above 0'];
        yield 'less memory than PHP has' => ['--max-memory=1M', '--max-memory is "1M": it must be at least 16M, because PHP without an application needs more'];
        yield 'hang' => ['--hang-timeout=-2', '--hang-timeout is "-2": it must be a number of seconds, at least 0'];
        yield 'log' => ['--log=xml', '--log is "xml": it must be text or json'];
        yield 'watch' => ['--watch-path=/nowhere', '--watch-path is "/nowhere": no such file or directory'];
        yield 'watch nothing' => ['--watch-path=', '--watch-path is empty'];
        yield 'no PID file' => ['--pid-file=', '--pid-file is empty'];
        yield 'no address' => ['--metrics=', '--metrics is empty'];
        yield 'a port only' => ['--metrics=9464', '--metrics: "9464" is not an address for metrics: write HOST:PORT or [IPV6]:PORT, such as 127.0.0.1:9464'];
        yield 'no port of TCP' => ['--metrics=127.0.0.1:65536', '--metrics: "127.0.0.1:65536" is not an address for metrics: its port must be at most 65535'];
    }

    /** @dataProvider badVariables */
    #[DataProvider('badVariables')]
    public function testAnUnknownValueOfAVariableOfTheLogIsRefused(string $variable, string $value, string $complaint): void
    {
        \putenv("{$variable}={$value}");
        try {
            $weft = Weft::run(['run', __FILE__]);
        } finally {
            \putenv($variable);
        }

        self::assertSame([2, "weft run: {$complaint}\n"], [$weft->exitCode, $weft->errors]);
    }

    /** @return iterable<string, array{string, string, string}> */
    public static function badVariables(): iterable
    {
        yield 'format' => ['WEFT_LOG', 'xml', 'WEFT_LOG must be text or json, got "xml"'];
        yield 'level' => ['WEFT_LOG_LEVEL', 'loud', 'WEFT_LOG_LEVEL must be debug, info, notice, warning, error, critical, alert or emergency, got "loud"'];
    }

    /**
     * @param array<string, string> $files
     *
     * @dataProvider machines
     */
    #[DataProvider('machines')]
    public function testWorkersAutoIsTheAffinityWithinTheCpuQuota(int $expected, array $files): void
    {
        $root = \sys_get_temp_dir() . '/weft-cpus-' . \bin2hex(\random_bytes(6));
        foreach ($files + ['/proc/self/status' => "Name:\tphp\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n"] as $path => $contents) {
            @\mkdir(\dirname($root . $path), recursive: true);
            \file_put_contents($root . $path, $contents);
        }
        try {
            self::assertSame($expected, (new Processors($root))->available());
        } finally {
            \exec('rm -rf ' . \escapeshellarg($root));
        }
    }

    /** @return iterable<string, array{int, array<string, string>}> CPUs, and files of a machine with an affinity of 8 CPUs */
    public static function machines(): iterable
    {
        $two = static fn(string $group, string $mounted = '/'): array => [
            '/proc/self/cgroup' => "0::$group\n",
            '/proc/self/mountinfo' => "29 23 0:26 $mounted /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
        ];
        $one = static fn(string $group, string $mounted = '/'): array => [
            '/proc/self/cgroup' => "5:memory:$group\n4:cpu,cpuacct:$group\n0::/\n",
            '/proc/self/mountinfo' => "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
                . "32 31 0:29 $mounted /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
                . "35 31 0:32 $mounted /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n",
        ];
        $quota = static fn(string $directory, int $quota): array => [
            "/sys/fs/cgroup/cpu,cpuacct$directory/cpu.cfs_quota_us" => "$quota\n",
            "/sys/fs/cgroup/cpu,cpuacct$directory/cpu.cfs_period_us" => "100000\n",
        ];

        yield 'no control groups' => [8, []];
        yield 'two words of affinity' => [40, ['/proc/self/status' => "Cpus_allowed:\t000000ff,ffffffff\n"]];
        yield 'no /proc' => [1, ['/proc/self/status' => '']];
        yield 'version 2, no limit' => [8, $two('/') + ['/sys/fs/cgroup/cpu.max' => "max 100000\n"]];
        yield 'version 2, two CPUs' => [2, $two('/') + ['/sys/fs/cgroup/cpu.max' => "200000 100000\n"]];
        yield 'version 2, one and a half' => [2, $two('/') + ['/sys/fs/cgroup/cpu.max' => "150000 100000\n"]];
        yield 'version 2, half a CPU' => [1, $two('/') + ['/sys/fs/cgroup/cpu.max' => "50000 100000\n"]];
        yield 'version 2, more than the affinity' => [8, $two('/') + ['/sys/fs/cgroup/cpu.max' => "3200000 100000\n"]];
        yield 'version 2, another period' => [4, $two('/app') + ['/sys/fs/cgroup/app/cpu.max' => "40000 10000\n"]];
        yield 'version 2, a group above has less' => [3, $two('/system.slice/app.service') + [
            '/sys/fs/cgroup/system.slice/app.service/cpu.max' => "400000 100000\n",
            '/sys/fs/cgroup/system.slice/cpu.max' => "300000 100000\n",
        ]];
        yield 'version 2, the path on the host' => [2, $two('/docker/4711', '/docker/4711') + ['/sys/fs/cgroup/cpu.max' => "200000 100000\n"]];
        yield 'version 1, no limit' => [8, $one('/app') + $quota('/app', -1)];
        yield 'version 1, two and a half CPUs' => [3, $one('/app') + $quota('/app', 250000) + $quota('', -1)];
        yield 'version 1, a group above has less' => [2, $one('/pods/one') + $quota('/pods/one', -1) + $quota('/pods', 200000)];
        yield 'version 1, the path on the host' => [4, $one('/docker/4711', '/docker/4711') + $quota('', 400000)];
        yield 'version 1, a mount of something else' => [4, $one('/docker/4711', '/docker/47') + $quota('', 400000)];
    }

    public function testAFileThatDoesNotExistIsRefused(): void
    {
        $weft = Weft::run(['run', '/nowhere/app.php']);

        self::assertSame([2, "weft run: there is no file \"/nowhere/app.php\" to run\n"], [$weft->exitCode, $weft->errors]);
    }

    /**
     * @param list<string> $options
     * @param array<string, string> $variables
     *
     * @dataProvider logs
     */
    #[DataProvider('logs')]
    public function testTheLogIsAsTheOptionsSayAndOtherwiseTheEnvironment(array $options, array $variables, string $json, string $expected): void
    {
        $app = new Application('fwrite(STDERR, "worker has " . getenv("WEFT_LOG") . " " . getenv("WEFT_LOG_LEVEL") . "\n"); exit(1);');
        foreach ($variables as $name => $value) {
            \putenv("{$name}={$value}");
        }
        try {
            $weft = Weft::run(['run', ...$options, '--max-crashes=1', $app->file]);
        } finally {
            \array_map(\putenv(...), \array_keys($variables));
        }

        self::assertSame(1, $weft->exitCode, $weft->errors);
        self::assertStringContainsString("worker has {$expected}\n", $weft->errors);
        self::assertSame($json === 'json', \str_contains($weft->errors, '{"time":'), $weft->errors);
        self::assertSame(\str_contains($expected, 'warning'), !\str_contains($weft->errors, 'started'), $weft->errors);
    }

    /** @return iterable<string, array{list<string>, array<string, string>, string, string}> options, environment, format of the supervisor, variables of the worker */
    public static function logs(): iterable
    {
        yield 'neither' => [[], [], 'text', ' '];
        yield 'variables' => [[], ['WEFT_LOG' => 'json', 'WEFT_LOG_LEVEL' => 'warning'], 'json', 'json warning'];
        yield 'options' => [['--log=json', '-q'], [], 'json', 'json warning'];
        yield 'options replace variables' => [['--log=text', '-v'], ['WEFT_LOG' => 'json', 'WEFT_LOG_LEVEL' => 'warning'], 'text', 'text debug'];
        yield 'an option replaces a variable that is wrong' => [['--log=text', '-q'], ['WEFT_LOG' => 'xml', 'WEFT_LOG_LEVEL' => 'loud'], 'text', 'text warning'];
        yield 'empty variables' => [[], ['WEFT_LOG' => '', 'WEFT_LOG_LEVEL' => ''], 'text', ' '];
    }

    public function testAnAddressOfAnotherMachineCannotBeUsedForMetrics(): void
    {
        $weft = Weft::run(['run', '--metrics=192.0.2.1:9464', __FILE__]);

        self::assertSame(1, $weft->exitCode);
        self::assertStringContainsString('weft run: cannot serve metrics on 192.0.2.1:9464: ', $weft->errors);
    }

    public function testWithoutTheExtensionTheCommandSaysHowToLoadIt(): void
    {
        $weft = Weft::run(['run', __FILE__], ['-d', 'disable_functions=pcntl_exec']);

        self::assertSame(1, $weft->exitCode);
        self::assertStringContainsString('needs the extension weft', (string) \preg_replace('/\s+/', ' ', $weft->errors));
    }
}
