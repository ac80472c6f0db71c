<?php

declare(strict_types=1);

namespace Weft\Bench;

/**
 * The cost of a small durable write, the lower bound of sequential transactions. Other load of the machine
 * raises it (seen: from 50 µs to 4 ms while compilers held both cores), so a wide spread says that runs were disturbed.
 */
final class DiskFlush
{
    private const SAMPLES = 50;
    private const BYTES = 8192;

    /**
     * @param string $directory on the disk in question
     *
     * @return float median microseconds of an fdatasync after overwriting 8 KiB
     */
    public static function microseconds(string $directory): float
    {
        $path = "$directory/flush-" . getmypid();
        $file = fopen($path, 'w');
        try {
            return Spread::of(array_map(static fn (int $i): float => self::once($file, $i), range(1, self::SAMPLES)))->median;
        } finally {
            fclose($file);
            unlink($path);
        }
    }

    /** @param resource $file */
    private static function once($file, int $i): float
    {
        rewind($file);
        fwrite($file, str_repeat(chr($i), self::BYTES));
        $started = hrtime(true);
        fdatasync($file);

        return (hrtime(true) - $started) / 1000;
    }
}
