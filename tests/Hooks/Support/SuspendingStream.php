<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks\Support;

// PHP calls the methods of a stream by these names.
// phpcs:disable PSR1.Methods.CamelCapsMethodName

/** A stream of three lines, or a directory of three files, that calls a function before each read and write, which may suspend the task. */
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

    public function dir_opendir(): bool
    {
        return true;
    }

    public function dir_readdir(): string|false
    {
        (self::$before)();

        return $this->left-- > 0 ? 'file' : false;
    }

    public function dir_rewinddir(): bool
    {
        $this->left = 3;

        return true;
    }

    public function dir_closedir(): bool
    {
        return true;
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
