<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

use Weft\Internal\LoadedExtension;
use Weft\Runtime\Hook;
use Weft\Runtime\Internal\HookCheck;
use Weft\Version;

/**
 * The checks of `weft doctor`.
 *
 * @internal
 */
final class Diagnosis
{
    /** The default fibers of a process, and the memory mappings and bytes of `memory_limit` that each takes. */
    private const DEFAULT_FIBERS = 10_000;
    private const MAPPINGS_PER_FIBER = 2;
    private const BYTES_PER_FIBER = 17_200;
    private const OPEN_FILES = 4_096;

    /** @return list<Finding> */
    public function findings(): array
    {
        return [
            $this->php(),
            $this->threadSafety(),
            $this->extension(),
            $this->opcache(),
            $this->jit(),
            $this->xdebug(),
            $this->memoryLimit(),
            $this->openFiles(),
            $this->mappings(),
            ...$this->hooks(),
        ];
    }

    private function php(): Finding
    {
        if (\PHP_VERSION_ID < 80204) {
            return Finding::fail('PHP', \PHP_VERSION, 'Use 8.2.4 or newer: before that the garbage collector crashes on suspended fibers (php-src #10496).');
        }

        return Finding::ok('PHP', \PHP_VERSION);
    }

    private function threadSafety(): Finding
    {
        return \PHP_ZTS
            ? Finding::fail('thread safety', 'ZTS', 'Use a non-thread-safe build (NTS): the extension cannot be compiled for a thread-safe one.')
            : Finding::ok('thread safety', 'NTS');
    }

    private function extension(): Finding
    {
        $extension = Version::extension();
        if ($extension === null) {
            $ini = \php_ini_loaded_file() ?: 'php.ini';
            return Finding::fail('extension weft', 'not loaded', "Add extension=/path/to/libweft.so to $ini, or in a source checkout run `make build`.");
        }
        if ($extension !== Version::LIBRARY) {
            return Finding::fail('extension weft', "$extension, but the library is " . Version::LIBRARY, LoadedExtension::ofThisProcess()->advice() . '.');
        }
        if (Version::extensionInterfaceHash() !== Version::INTERFACE_HASH) {
            return Finding::fail(
                'extension weft',
                "$extension with the interface hash " . (Version::extensionInterfaceHash() ?? 'none') . ', but the library has ' . Version::INTERFACE_HASH,
                'Both were built from different sources. ' . LoadedExtension::ofThisProcess()->advice() . '.',
            );
        }

        return Finding::ok('extension weft', "$extension, like the library");
    }

    private function opcache(): Finding
    {
        if (!\extension_loaded('Zend OPcache')) {
            return Finding::warn('opcache', 'not installed', 'Install and load opcache: PHP code runs considerably faster with it.');
        }

        return \filter_var(\ini_get('opcache.enable_cli'), \FILTER_VALIDATE_BOOL)
            ? Finding::ok('opcache', 'on for the command line')
            : Finding::warn('opcache', 'off for the command line', 'Set opcache.enable_cli=1 in php.ini: workers are command line processes.');
    }

    private function jit(): Finding
    {
        $status = \function_exists('opcache_get_status') ? @\opcache_get_status(false) : false;
        $jit = \is_array($status) ? ($status['jit'] ?? []) : [];
        if (($jit['on'] ?? false) !== true) {
            return Finding::ok('JIT', 'off');
        }
        $mode = (string) \ini_get('opcache.jit');
        // The tens digit of a numeric mode is the trigger; 5 is tracing.
        $tracing = \in_array($mode, ['tracing', 'on', '1', ''], true) || \preg_match('/^\d?\d5\d$/', $mode) === 1;

        return $tracing
            ? Finding::warn('JIT', "tracing (opcache.jit=$mode)", 'Set opcache.jit=function or off: the tracing JIT has a history of crashes with fibers (php-src #12482, #17003).')
            : Finding::ok('JIT', "opcache.jit=$mode");
    }

    private function xdebug(): Finding
    {
        if (!\extension_loaded('xdebug')) {
            return Finding::ok('Xdebug', 'not loaded');
        }
        $mode = \getenv('XDEBUG_MODE') ?: (string) \ini_get('xdebug.mode');

        return $mode === 'off'
            ? Finding::ok('Xdebug', 'loaded, mode off')
            : Finding::warn('Xdebug', "loaded, mode $mode", 'Do not load it in production, or set XDEBUG_MODE=off: it slows every call down.');
    }

    private function memoryLimit(): Finding
    {
        $setting = (string) \ini_get('memory_limit');
        $limit = \ini_parse_quantity($setting);
        $wanted = self::DEFAULT_FIBERS * self::BYTES_PER_FIBER;

        return $limit < 0 || $limit >= $wanted
            ? Finding::ok('memory_limit', $setting)
            : Finding::warn('memory_limit', $setting, \sprintf(
                'Set -1 or at least %d M, and weft run --max-memory instead: %d suspended tasks take %1$d MB of it.',
                (int) \ceil($wanted / 1e6),
                self::DEFAULT_FIBERS,
            ));
    }

    private function openFiles(): Finding
    {
        $limits = (string) @\file_get_contents('/proc/self/limits');
        if (\preg_match('/^Max open files\s+(\S+)\s+(\S+)/m', $limits, $found) !== 1) {
            return Finding::warn('open files', 'unknown', 'Check `ulimit -n`: every connection takes a descriptor.');
        }
        [, $soft, $hard] = $found;

        return $soft === 'unlimited' || (int) $soft >= self::OPEN_FILES
            ? Finding::ok('open files', "$soft (hard limit $hard)")
            : Finding::warn('open files', "$soft (hard limit $hard)", 'Run `ulimit -n 65536`, or set LimitNOFILE=65536 in the systemd unit: every connection takes a descriptor.');
    }

    private function mappings(): Finding
    {
        $count = @\file_get_contents('/proc/sys/vm/max_map_count');
        if ($count === false) {
            return Finding::warn('vm.max_map_count', 'unknown', 'Every suspended task takes two memory mappings.');
        }
        $count = (int) $count;
        $fibers = \intdiv($count, self::MAPPINGS_PER_FIBER);

        return $fibers > 2 * self::DEFAULT_FIBERS
            ? Finding::ok('vm.max_map_count', "$count, enough for $fibers suspended tasks")
            : Finding::warn('vm.max_map_count', (string) $count, 'Run `sysctl vm.max_map_count=262144`: every suspended task takes two memory mappings.');
    }

    /** @return list<Finding> */
    private function hooks(): array
    {
        if (LoadedExtension::problem() !== null) {
            return [];
        }
        try {
            $hooks = Hook::fromEnvironment();
        } catch (\ValueError $unknown) {
            return [Finding::fail('hooks', (string) \getenv('WEFT_HOOKS'), $unknown->getMessage() . '.')];
        }
        if ($hooks === []) {
            return [Finding::ok('hooks', 'off (WEFT_HOOKS): libraries block the process')];
        }
        $failure = HookCheck::failure();
        if ($failure !== null) {
            return [Finding::warn('hooks', "do not work: $failure", 'Use a dynamically linked PHP, such as the one of your distribution: libraries block the process otherwise.')];
        }
        $names = \implode(', ', \array_map(static fn(Hook $hook): string => $hook->value, $hooks));
        $libraries = HookCheck::hookedLibraries();
        $blocking = HookCheck::blockingExtensions();
        $findings = [Finding::ok('hooks', "$names; checked; in " . \implode(', ', \array_diff($libraries, \array_map(strtolower(...), $blocking))))];
        if ($blocking !== []) {
            $findings[] = Finding::warn(
                'hooks',
                'not in ' . \implode(', ', $blocking),
                'Weft has no rules for these extensions, so a wait in one of their functions blocks the process: call them in another process, see docs/reference/hooks.md.',
            );
        }

        return $findings;
    }
}
