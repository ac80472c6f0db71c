<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks\Support;

// PHP calls the methods of a stream by these names.
// phpcs:disable PSR1.Methods.CamelCapsMethodName

/** A stream of three lines that calls a function before each read and write, which may suspend the task. */
final class SuspendingStream
{
    /** @var resource|null */
    public $context;
    private int $left = 3;
    private static ?\Closure $before = null;

    /** @return resource */
    public static function open(\Closure $before)
    {
        self::$before = $before;
        if (!in_array('suspending', stream_get_wrappers(), true)) {
            stream_wrapper_register('suspending', self::class);
        }

        return fopen('suspending://', 'r+');
    }

    public function stream_open(): bool
    {
        return true;
    }

    public function stream_read(int $count): string
    {
        (self::$before)();

        return $this->left-- > 0 ? "line\n" : '';
    }

    public function stream_write(string $data): int
    {
        (self::$before)();

        return strlen($data);
    }

    public function stream_eof(): bool
    {
        return $this->left <= 0;
    }

    /** @return array<string, int> */
    public function stream_stat(): array
    {
        return [];
    }

    /** @return array<string, int> */
    public function url_stat(): array
    {
        return [];
    }
}
