<?php

declare(strict_types=1);

namespace Weft\Bench;

/** Limits the processor time and the memory of processes as a container does: control groups of Linux, version 1 or 2. */
final class ControlGroup
{
    private const PERIOD_MICROSECONDS = 100_000;

    /** @param array<string, string> $directories by controller: cpu, cpuacct and memory; the same one thrice in version 2 */
    private function __construct(public readonly int $version, private readonly array $directories)
    {
    }

    /**
     * @param string $name of the group, not in use
     * @param float $cpus processor seconds per second
     * @param int $memory bytes
     *
     * @return self|null null where this machine does not allow it
     */
    public static function create(string $name, float $cpus, int $memory): ?self
    {
        $group = self::versionTwo($name) ?? self::versionOne($name);
        try {
            $group?->limit($cpus, $memory);
        } catch (BenchmarkException) {
            $group->remove();

            return null;
        }

        return $group;
    }

    /** @return list<string> to be put before a command, which then runs in the group with everything it starts */
    public function enter(): array
    {
        $files = array_map(static fn (string $directory): string => "$directory/cgroup.procs", array_unique(array_values($this->directories)));
        $steps = array_map(static fn (string $file): string => 'echo $$ >' . escapeshellarg($file), $files);

        return ['sh', '-c', implode(' && ', $steps) . ' && exec "$@"', 'sh'];
    }

    /** User and system time so far. */
    public function cpuSeconds(): float
    {
        return $this->version === 2
            ? self::field("{$this->directories['cpu']}/cpu.stat", 'usage_usec') / 1e6
            : (int) self::read("{$this->directories['cpuacct']}/cpuacct.usage") / 1e9;
    }

    /** How long it was kept from running because it had used up its share. */
    public function throttledSeconds(): float
    {
        return $this->version === 2
            ? self::field("{$this->directories['cpu']}/cpu.stat", 'throttled_usec') / 1e6
            : self::field("{$this->directories['cpu']}/cpu.stat", 'throttled_time') / 1e9;
    }

    /** The most it ever held, files it read and wrote included; 0 where the kernel does not say. */
    public function peakMemoryMib(): float
    {
        $file = $this->version === 2 ? 'memory.peak' : 'memory.max_usage_in_bytes';

        return (int) self::read("{$this->directories['memory']}/$file") / 1024 ** 2;
    }

    /** Its processes must have ended. */
    public function remove(): void
    {
        array_map(static fn (string $directory): bool => @rmdir($directory), array_unique(array_values($this->directories)));
    }

    private function limit(float $cpus, int $memory): void
    {
        $quota = (int) round($cpus * self::PERIOD_MICROSECONDS);
        if ($this->version === 2) {
            self::write("{$this->directories['cpu']}/cpu.max", $quota . ' ' . self::PERIOD_MICROSECONDS);
            self::write("{$this->directories['memory']}/memory.max", (string) $memory);

            return;
        }
        self::write("{$this->directories['cpu']}/cpu.cfs_period_us", (string) self::PERIOD_MICROSECONDS);
        self::write("{$this->directories['cpu']}/cpu.cfs_quota_us", (string) $quota);
        self::write("{$this->directories['memory']}/memory.limit_in_bytes", (string) $memory);
    }

    private static function versionTwo(string $name): ?self
    {
        $mount = self::mounts('cgroup2')[''] ?? null;
        if ($mount === null || array_diff(['cpu', 'memory'], explode(' ', self::read("$mount/cgroup.controllers"))) !== []) {
            return null;
        }
        @file_put_contents("$mount/cgroup.subtree_control", '+cpu +memory');
        $directory = "$mount/$name";

        return @mkdir($directory) && is_file("$directory/cpu.max") && is_file("$directory/memory.max")
            ? new self(2, ['cpu' => $directory, 'cpuacct' => $directory, 'memory' => $directory])
            : null;
    }

    private static function versionOne(string $name): ?self
    {
        $directories = [];
        foreach (['cpu', 'cpuacct', 'memory'] as $controller) {
            $mount = self::mounts('cgroup')[$controller] ?? null;
            $directories[$controller] = "$mount/$name";
            if ($mount === null || !is_dir("$mount/$name") && !@mkdir("$mount/$name")) {
                return null;
            }
        }

        return new self(1, $directories);
    }

    /** @return array<string, string> mount points by controller; version 2 has one, under the empty name */
    private static function mounts(string $type): array
    {
        $mounts = [];
        foreach (explode("\n", (string) @file_get_contents('/proc/self/mounts')) as $line) {
            [, $point, $found, $options] = explode(' ', $line) + ['', '', '', ''];
            if ($found === $type) {
                $mounts += array_fill_keys($type === 'cgroup2' ? [''] : explode(',', $options), $point);
            }
        }

        return $mounts;
    }

    private static function field(string $file, string $name): int
    {
        return preg_match("/^$name (\d+)/m", self::read($file), $match) ? (int) $match[1] : 0;
    }

    private static function read(string $file): string
    {
        return trim((string) @file_get_contents($file));
    }

    private static function write(string $file, string $value): void
    {
        if (@file_put_contents($file, $value) === false) {
            throw new BenchmarkException("cannot write $file");
        }
    }
}
