<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class OptionsTest extends TestCase
{
    /** @dataProvider badOptions */
    #[DataProvider('badOptions')]
    public function testABadOptionIsRefusedWithTheValueAndWhatItMustBe(string $option, string $complaint): void
    {
        $weft = Weft::run(['run', $option, __FILE__]);

        self::assertSame("weft run: $complaint\n", $weft->errors);
        self::assertSame(2, $weft->exitCode);
    }

    /** @return iterable<string, array{string, string}> */
    public static function badOptions(): iterable
    {
        yield 'no workers' => ['--workers=0', '--workers is "0": it must be an integer of at least 1'];
        yield 'many workers' => ['--workers=many', '--workers is "many": it must be an integer of at least 1'];
        yield 'negative requests' => ['--max-requests=-1', '--max-requests is "-1": it must be an integer of at least 1'];
        yield 'memory' => ['--max-memory=256X', '--max-memory is "256X": it must be a number of bytes, optionally with K, M or G, such as 256M'];
        yield 'age' => ['--max-age=1h', '--max-age is "1h": it must be a number of seconds, at least 0'];
        yield 'hang' => ['--hang-timeout=-2', '--hang-timeout is "-2": it must be a number of seconds, at least 0'];
        yield 'log' => ['--log=xml', '--log is "xml": it must be text or json'];
        yield 'watch' => ['--watch-path=/nowhere', '--watch-path is "/nowhere": no such file or directory'];
    }

    public function testAFileThatDoesNotExistIsRefused(): void
    {
        $weft = Weft::run(['run', '/nowhere/app.php']);

        self::assertSame([2, "weft run: there is no file \"/nowhere/app.php\" to run\n"], [$weft->exitCode, $weft->errors]);
    }

    public function testAnAddressThatCannotBeUsedIsRefused(): void
    {
        $weft = Weft::run(['run', '--metrics=127.0.0.1:99999', __FILE__]);

        self::assertSame(1, $weft->exitCode);
        self::assertStringContainsString('weft run: cannot serve metrics on 127.0.0.1:99999: ', $weft->errors);
    }

    public function testWithoutTheExtensionTheCommandSaysHowToLoadIt(): void
    {
        $weft = Weft::run(['run', __FILE__], ['-d', 'disable_functions=pcntl_exec']);

        self::assertSame(1, $weft->exitCode);
        self::assertStringContainsString('needs the extension weft', (string) \preg_replace('/\s+/', ' ', $weft->errors));
    }
}
