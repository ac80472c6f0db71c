<?php

declare(strict_types=1);

namespace Weft\Tests\Documentation;

/** Does what each guide says. */
final class GuidesTest extends PagesTestCase
{
    /** @return array<string, array{string}> */
    public static function guides(): array
    {
        return self::pages('guides');
    }

    /** @dataProvider guides */
    public function testTheGuideDoesWhatItSays(string $file): void
    {
        $this->runPage(Page::read($file));
    }
}
