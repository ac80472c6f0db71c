<?php

declare(strict_types=1);

namespace Weft\Bench\Guard;

use Weft\Bench\BenchmarkException;

/** Reads what Callgrind has written: the instructions, and the calls of the functions that allocate. */
final class Callgrind
{
    private const ALLOCATORS = ['malloc', 'calloc', 'realloc', 'posix_memalign', 'aligned_alloc', 'memalign'];

    /**
     * @param string $file callgrind.out
     *
     * @return array{instructions: int, allocations: int}
     *
     * @throws BenchmarkException when it is not complete
     */
    public static function read(string $file): array
    {
        $lines = @fopen($file, 'r') ?: throw new BenchmarkException("Callgrind has not written $file");
        $names = [];
        $called = '';
        [$instructions, $allocations] = [null, 0];
        while (($line = fgets($lines)) !== false) {
            if (preg_match('/^c?fn=(\(\d+\))(?: (.+))?$/', rtrim($line), $match)) {
                isset($match[2]) && $names[$match[1]] = $match[2];
                $line[0] === 'c' && $called = $names[$match[1]] ?? '';
            } elseif (str_starts_with($line, 'calls=')) {
                $allocations += in_array($called, self::ALLOCATORS, true) ? (int) substr($line, strlen('calls=')) : 0;
            } elseif (preg_match('/^(?:totals|summary): (\d+)/', $line, $match)) {
                $instructions = (int) $match[1];
            }
        }
        fclose($lines);

        return ['instructions' => $instructions ?? throw new BenchmarkException("$file has no sum"), 'allocations' => $allocations];
    }

    /**
     * The command under Callgrind, with PHP's own allocator off, so that its allocations are counted as well.
     *
     * @param list<string> $command
     *
     * @return list<string>
     */
    public static function command(string $file, array $command): array
    {
        return ['env', 'USE_ZEND_ALLOC=0', 'valgrind', '--quiet', '--tool=callgrind', "--callgrind-out-file=$file", ...$command];
    }
}
