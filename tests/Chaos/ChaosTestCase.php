<?php

declare(strict_types=1);

namespace Weft\Tests\Chaos;

use PHPUnit\Framework\TestCase;

/** The checker itself, in short: `make chaos MESSAGES=1000000` is the long one. A class for each transport, so that they run side by side. */
abstract class ChaosTestCase extends TestCase
{
    abstract protected function transport(): string;

    /** How many kinds of faults there are for it. */
    abstract protected function faults(): int;

    public function testNothingIsLostAndNothingHappensTwiceWhateverBreaks(): void
    {
        $directory = \sys_get_temp_dir() . '/weft-chaos-' . \bin2hex(\random_bytes(4));
        \mkdir($directory);
        $command = [\PHP_BINARY, '-d', 'extension=' . self::extension(), \dirname(__DIR__, 2) . '/bench/chaos/run'];
        $command = [...$command, '--messages=20000', "--transport={$this->transport()}", "--out={$directory}/chaos.json"];
        // Servers of its own, whose data stays for the next run.
        $var = (\getenv('WEFT_VAR') ?: \dirname(__DIR__, 2) . '/var') . "/chaos-{$this->transport()}";
        $process = \proc_open($command, [['file', '/dev/null', 'r'], ['file', "{$directory}/out", 'w'], ['file', "{$directory}/err", 'w']], $pipes, null, ['WEFT_VAR' => $var, 'WEFT_EXTENSION' => self::extension()] + \getenv());
        self::assertIsResource($process);
        $code = \proc_close($process);
        $told = \file_get_contents("{$directory}/out") . \file_get_contents("{$directory}/err");
        $verdict = \json_decode((string) @\file_get_contents("{$directory}/chaos.json"), true);
        \array_map('unlink', \glob("{$directory}/*") ?: []);
        \rmdir($directory);
        self::assertIsArray($verdict, $told);

        self::assertSame([0, 0], [$verdict['lost'], $verdict['duplicate_effects']], $told);
        self::assertSame([20_000, $verdict['effects_expected']], [$verdict['sent'], $verdict['effects']], $told);
        self::assertSame($verdict['dead_lettered_expected'], $verdict['dead_lettered'], 'only messages that always fail are dead-lettered');
        self::assertCount($this->faults(), $verdict['faults']);
        self::assertGreaterThanOrEqual(2, \min($verdict['faults']));
        self::assertSame(0, $code);
    }

    /** The library this process has loaded. */
    private static function extension(): string
    {
        $given = (string) \getenv('WEFT_EXTENSION');
        \preg_match('~^\S+ \S+ \S+ \S+ \S+\s+(\S*libweft\S*|\S*weft\.so)$~m', (string) @\file_get_contents('/proc/self/maps'), $loaded);

        return $given !== '' ? $given : ($loaded[1] ?? 'weft');
    }
}
