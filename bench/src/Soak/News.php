<?php

declare(strict_types=1);

namespace Weft\Bench\Soak;

use Weft\Runtime\Task;

use function Weft\async;
use function Weft\delay;

/** Progress lines on stderr: a silent run of hours looks as if it hangs. */
final class News
{
    private const SECONDS = 10.0;

    /**
     * Prints the first line now, and then one every ten seconds.
     *
     * @param \Closure(): string $line how far it is
     * @return Task to be cancelled at the end
     */
    public static function of(\Closure $line): Task
    {
        $started = hrtime(true);
        $print = static function () use ($line, $started): void {
            fwrite(STDERR, sprintf("%8.0f s  %s\n", (hrtime(true) - $started) / 1e9, $line()));
        };
        $print();

        return async(static function () use ($print): never {
            while (true) {
                delay(self::SECONDS);
                $print();
            }
        });
    }
}
