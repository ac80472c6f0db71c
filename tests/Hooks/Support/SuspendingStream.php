<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks\Support;

// PHP calls the methods of a stream by these names.
// phpcs:disable PSR1.Methods.CamelCapsMethodName

/** A stream whose reads and writes suspend the task: `suspending://seconds`. */
final class SuspendingStream
{
    /** @var resource|null */
    public $context;
    private float $seconds;
    private int $left = 3;

    /** @return resource */
    public static function open(float $seconds)
    {
        if (!in_array('suspending', stream_get_wrappers(), true)) {
            stream_wrapper_register('suspending', self::class);
        }

        return fopen("suspending://$seconds", 'r+');
    }

    public function stream_open(string $path): bool
    {
        $this->seconds = (float) substr($path, strlen('suspending://'));

        return true;
    }

    public function stream_read(int $count): string
    {
        \Weft\delay($this->seconds);

        return $this->left-- > 0 ? "line\n" : '';
    }

    public function stream_write(string $data): int
    {
        \Weft\delay($this->seconds);

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
}
