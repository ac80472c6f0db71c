<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

use PHPUnit\Framework\TestCase;

final class CommandTest extends TestCase
{
    public function testAPathThatDoesNotExistIsRefusedBeforeAServerStarts(): void
    {
        $directory = \sys_get_temp_dir() . '/weft-command-' . \bin2hex(\random_bytes(6));
        $root = \dirname(__DIR__, 2);

        \exec('WEFT_VAR=' . \escapeshellarg($directory) . ' ' . \escapeshellarg(\PHP_BINARY) . ' ' . \escapeshellarg("$root/scripts/test") . ' quick tests/Nowhere 2>&1', $output, $code);

        self::assertSame([2, ['scripts/test: there is no tests/Nowhere'], false], [$code, $output, \is_dir($directory)]);
    }
}
