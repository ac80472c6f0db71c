<?php

declare(strict_types=1);

namespace Weft\Tests\Documentation;

use PHPUnit\Framework\Attributes\DataProvider;

/** Does what each guide says. */
final class GuidesTest extends PagesTestCase
{
    /** Installing needs a release, the others have tests of their own: tests/Bridge. */
    private const OTHERS = ['install', 'laravel', 'symfony'];

    /** @return array<string, array{string}> */
    public static function guides(): array
    {
        return \array_diff_key(self::pages('guides'), \array_flip(self::OTHERS));
    }

    /** @dataProvider guides */
    #[DataProvider('guides')]
    public function testTheGuideSaysWhereToBegin(string $file): void
    {
        self::assertStringContainsString('](index.md#before-you-begin)', (string) \file_get_contents($file));
    }

    public function testTheDirectoryWithoutComposerHasWhatTheIndexPromises(): void
    {
        \preg_match('/### Without Composer.*?^```sh\n(.*?)^```$/ms', (string) \file_get_contents(\dirname(__DIR__, 2) . '/docs/guides/index.md'), $block);
        $home = \sys_get_temp_dir() . '/weft-home-' . \bin2hex(\random_bytes(6));
        \mkdir("$home/app", recursive: true);
        \symlink(\dirname(__DIR__, 2), "$home/weft");
        $php = \escapeshellarg(\PHP_BINARY) . ' -d extension=' . \escapeshellarg((string) \getenv('WEFT_EXTENSION'));
        $script = 'cd "$HOME/app"' . "\n$block[1]\necho '<?php namespace App; final class Found {}' > src/Found.php\n"
            . "$php -r 'require \"vendor/autoload.php\"; foreach ([Weft\\App::class, App\\Found::class, PHPUnit\\Framework\\TestCase::class] as \$class) { class_exists(\$class) || exit(\$class); }'\n"
            . "$php vendor/bin/weft list --raw | grep -c '^run '";
        try {
            \exec('HOME=' . \escapeshellarg($home) . ' bash -eu -c ' . \escapeshellarg($script) . ' 2>&1', $output, $code);
            self::assertSame([0, ['1']], [$code, $output]);
        } finally {
            \exec('rm -rf ' . \escapeshellarg($home));
        }
    }

    /** @dataProvider guides */
    #[DataProvider('guides')]
    public function testTheGuideDoesWhatItSays(string $file): void
    {
        $this->runPages(Page::read($file));
    }
}
