<?php

declare(strict_types=1);

namespace Weft\Tests\Chaos;

use PHPUnit\Framework\TestCase;

/** The checker itself, in short: `make chaos MESSAGES=1000000` is the long one. */
final class ChaosTest extends TestCase
{
    /** @dataProvider transports */
    public function testNothingIsLostAndNothingHappensTwiceWhateverBreaks(string $transport, int $faults): void
    {
        $folder = \sys_get_temp_dir() . '/weft-chaos-' . \bin2hex(\random_bytes(4));
        \mkdir($folder);
        $command = [\PHP_BINARY, '-d', 'extension=' . self::extension(), \dirname(__DIR__, 2) . '/bench/chaos/run'];
        $command = [...$command, '--messages=20000', "--transport={$transport}", "--out={$folder}/chaos.json"];
        $process = \proc_open($command, [['file', '/dev/null', 'r'], ['file', "{$folder}/out", 'w'], ['file', "{$folder}/err", 'w']], $pipes, null, ['WEFT_EXTENSION' => self::extension()] + \getenv());
        self::assertIsResource($process);
        $code = \proc_close($process);
        $told = \file_get_contents("{$folder}/out") . \file_get_contents("{$folder}/err");
        self::assertFileExists("{$folder}/chaos.json", $told);
        $verdict = \json_decode((string) \file_get_contents("{$folder}/chaos.json"), true);
        \array_map('unlink', \glob("{$folder}/*") ?: []);
        \rmdir($folder);

        self::assertSame([0, 0], [$verdict['lost'], $verdict['duplicate_effects']], $told);
        self::assertSame([20_000, $verdict['effects_expected']], [$verdict['sent'], $verdict['effects']], $told);
        self::assertSame($verdict['parked_expected'], $verdict['parked'], 'only what always fails is parked');
        self::assertCount($faults, $verdict['faults']);
        self::assertGreaterThanOrEqual(2, \min($verdict['faults']));
        self::assertSame(0, $code);
    }

    public static function transports(): iterable
    {
        yield 'SQLite' => ['sqlite', 1];
        yield 'PostgreSQL' => ['postgres', 4];
        yield 'RabbitMQ and PostgreSQL' => ['rabbitmq', 8];
    }

    /** The library this process has loaded. */
    private static function extension(): string
    {
        $given = (string) \getenv('WEFT_EXTENSION');
        \preg_match('~^\S+ \S+ \S+ \S+ \S+\s+(\S*libweft\S*|\S*weft\.so)$~m', (string) @\file_get_contents('/proc/self/maps'), $loaded);

        return $given !== '' ? $given : ($loaded[1] ?? 'weft');
    }
}
