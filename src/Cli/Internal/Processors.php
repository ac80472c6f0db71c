<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

/**
 * The CPUs that this process may use: those of its affinity, and no more than the CPU quota of its control group pays for.
 *
 * A container with `--cpus=2` sees all CPUs of the machine, so its affinity alone would start too many workers. The quota is in files of control
 * groups: `cpu.max` in version 2, `cpu.cfs_quota_us` and `cpu.cfs_period_us` in version 1. A group also obeys the quotas of the groups above it.
 *
 * @internal
 */
final class Processors
{
    /** @param string $root the directory in which /proc and /sys are */
    public function __construct(private readonly string $root = '') {}

    /** At least 1. A quota of one and a half CPUs counts as 2. */
    public function available(): int
    {
        $available = $this->affinity();
        foreach ($this->groups() as [$directory, $mountPoint]) {
            $available = \min($available, $this->quota($mountPoint) ?? $available);
            for (; \strlen($directory) > \strlen($mountPoint); $directory = \dirname($directory)) {
                $available = \min($available, $this->quota($directory) ?? $available);
            }
        }

        return \max(1, $available);
    }

    private function affinity(): int
    {
        if (\preg_match('/^Cpus_allowed:\s+([0-9a-f,]+)$/m', $this->contents('/proc/self/status'), $mask) !== 1) {
            return 1;
        }
        $bits = 0;
        foreach (\str_split(\str_replace(',', '', $mask[1])) as $digit) {
            $bits += \substr_count(\decbin((int) \hexdec($digit)), '1');
        }

        return $bits;
    }

    /** @return list<array{string, string}> the directory of each group of this process, and where the tree of this group is mounted */
    private function groups(): array
    {
        $groups = [];
        // proc(5): number, parent, device, root of the mount, mount point, options, optional fields, "-", type, source, options of the file system.
        \preg_match_all('/^\d+ \d+ \S+ (\S+) (\S+) .*? - (cgroup2?) \S+ (\S+)$/m', $this->contents('/proc/self/mountinfo'), $mounts, \PREG_SET_ORDER);
        foreach ($mounts as [, $mounted, $mountPoint, $type, $options]) {
            $controller = $type === 'cgroup' ? 'cpu' : '';
            $path = $controller === '' || \in_array($controller, \explode(',', $options), true) ? $this->group($controller) : null;
            if ($path === null) {
                continue;
            }
            $mounted = \rtrim($mounted, '/');
            // A container may see the path of its group on the host, while only the group itself is mounted.
            $below = \str_starts_with("$path/", "$mounted/") ? \rtrim(\substr($path, \strlen($mounted)), '/') : '';
            $groups[] = [$mountPoint . $below, $mountPoint];
        }

        return $groups;
    }

    /** The path of this process's group in the tree of a controller; the tree of version 2 has no name. */
    private function group(string $controller): ?string
    {
        foreach (\explode("\n", $this->contents('/proc/self/cgroup')) as $line) {
            $fields = \explode(':', $line, 3);
            if (\count($fields) === 3 && \in_array($controller, \explode(',', $fields[1]), true)) {
                return $fields[2];
            }
        }

        return null;
    }

    /** The CPUs that a group may use at a time, or null without a limit. */
    private function quota(string $directory): ?int
    {
        $limit = $this->contents("$directory/cpu.max");
        if ($limit === '') {
            $limit = $this->contents("$directory/cpu.cfs_quota_us") . ' ' . $this->contents("$directory/cpu.cfs_period_us");
        }

        // "max" in version 2 and -1 in version 1 are no limit.
        return \preg_match('/^(\d+)\s+([1-9]\d*)\s*$/', $limit, $found) === 1 ? (int) \ceil((int) $found[1] / (int) $found[2]) : null;
    }

    private function contents(string $path): string
    {
        return (string) @\file_get_contents($this->root . $path);
    }
}
