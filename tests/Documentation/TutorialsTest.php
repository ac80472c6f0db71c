<?php

declare(strict_types=1);

namespace Weft\Tests\Documentation;

/** Does what the chapters say, as a reader does: one after the other in one directory. */
final class TutorialsTest extends PagesTestCase
{
    public function testTheChaptersDoWhatTheySay(): void
    {
        $this->runPages(...\array_map(static fn(array $chapter): Page => Page::read($chapter[0]), \array_values(self::chapters())));
    }

    public function testAChapterWithAServerSaysToStopTheOneBefore(): void
    {
        $chapterOfServer = 0;
        foreach (self::chapters() as $name => [$file]) {
            if (\in_array('server', \array_column(Page::read($file)->blocks, 'directive'), true)) {
                $chapterOfServer === 0 || self::assertStringContainsString("Stop the server of chapter {$chapterOfServer} with Ctrl-C", (string) \file_get_contents($file), $name);
                $chapterOfServer = (int) $name;
            }
        }

        self::assertSame(6, $chapterOfServer);
    }

    /** @return array<string, array{string}> */
    private static function chapters(): array
    {
        return self::pages('tutorials', '[0-9]-*');
    }
}
