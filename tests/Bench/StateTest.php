<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\TestCase;
use Weft\Tests\Extension;

/** `make state`, with as few requests as show both answers. */
final class StateTest extends TestCase
{
    public function testInterleavedRequestsSeeTheirOwnStateInKernelsOfTheirOwnAndThatOfOthersInOne(): void
    {
        if (!\is_file('/usr/share/php/Symfony/Bundle/SecurityBundle/autoload.php')) {
            self::markTestSkipped('Symfony is not installed: scripts/setup test');
        }
        $out = (string) \tempnam(\sys_get_temp_dir(), 'weft');
        try {
            $command = [\PHP_BINARY, __DIR__ . '/../../bench/state/run', '--extension=' . Extension::library(), '--frameworks=symfony', '--requests=128', '--slots=8', '--database=', "--out=$out"];
            \exec(\implode(' ', \array_map(\escapeshellarg(...), $command)) . ' 2>&1', $lines, $code);
            $output = \implode("\n", $lines);
            self::assertSame(0, $code, $output);
            $run = \json_decode((string) \file_get_contents($out), true, flags: \JSON_THROW_ON_ERROR)['runs'][0];
        } finally {
            \unlink($out);
        }

        self::assertSame(['symfony', 8, 128, 64, 0], [$run['framework'], $run['slots'], $run['requests'], $run['users'], $run['mismatches']], $output);
        self::assertGreaterThan(0, $run['shared_kernel_mismatches'], $output);
    }
}
