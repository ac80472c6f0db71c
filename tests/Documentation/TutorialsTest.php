<?php

declare(strict_types=1);

namespace Weft\Tests\Documentation;

use PHPUnit\Framework\Attributes\DataProvider;

/** Does what each chapter says, in a directory with the files of the chapters before it. */
final class TutorialsTest extends PagesTestCase
{
    /** @return array<string, array{string}> */
    public static function chapters(): array
    {
        return self::pages('tutorials', '[0-9]-*');
    }

    /** @dataProvider chapters */
    #[DataProvider('chapters')]
    public function testTheChapterDoesWhatItSays(string $file): void
    {
        // 2-database.md builds on 1-http.md.
        $before = \array_filter(\array_column(self::chapters(), 0), static fn(string $chapter): bool => \strcmp($chapter, $file) < 0);

        $this->runPage(Page::read($file), \array_map(Page::read(...), \array_values($before)));
    }
}
