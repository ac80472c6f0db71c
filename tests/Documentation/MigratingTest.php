<?php

declare(strict_types=1);

namespace Weft\Tests\Documentation;

use PHPUnit\Framework\Attributes\DataProvider;

/** Runs the programs for Weft beside those of other systems. */
final class MigratingTest extends PagesTestCase
{
    /** @return array<string, array{string}> */
    public static function guides(): array
    {
        return self::pages('migrating');
    }

    /** @dataProvider guides */
    #[DataProvider('guides')]
    public function testTheProgramsForWeftDoWhatThePageSays(string $file): void
    {
        $this->runPages(Page::read($file));
    }
}
