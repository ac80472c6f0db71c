<?php

declare(strict_types=1);

namespace Weft\Tests\Documentation;

use PHPUnit\Framework\Attributes\DataProvider;

/** Does what each guide says. */
final class GuidesTest extends PagesTestCase
{
    /** Installing needs a release, the others have tests of their own: tests/Bridge. */
    private const OTHERS = ['install', 'doctrine', 'laravel', 'symfony'];

    /** @return array<string, array{string}> */
    public static function guides(): array
    {
        return \array_diff_key(self::pages('guides'), \array_flip(self::OTHERS));
    }

    /** @dataProvider guides */
    #[DataProvider('guides')]
    public function testTheGuideDoesWhatItSays(string $file): void
    {
        $this->runPage(Page::read($file));
    }
}
