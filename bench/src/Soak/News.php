<?php

declare(strict_types=1);

namespace Weft\Bench\Soak;

use Weft\Runtime\Task;

use function Weft\async;
use function Weft\delay;

/** Progress lines on stderr: a silent run of hours looks as if it hangs. */
final class News
{
    private const FIRST = 1.0;
    private const SECONDS = 10.0;

    /**
     * @param \Closure(): string $line how far it is
     * @return Task to be cancelled at the end
     */
    public static function of(\Closure $line): Task
    {
        $started = hrtime(true);

        return async(static function () use ($line, $started): never {
            delay(self::FIRST);
            while (true) {
                fwrite(STDERR, sprintf("%8.0f s  %s\n", (hrtime(true) - $started) / 1e9, $line()));
                delay(self::SECONDS);
            }
        });
    }
}
