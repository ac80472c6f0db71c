<?php

declare(strict_types=1);

namespace Weft\Tests\Documentation;

use PHPUnit\Framework\TestCase;

/** Runs pages of docs/, see {@see Page}. */
abstract class PagesTestCase extends TestCase
{
    private ?Workspace $workspace = null;

    protected function tearDown(): void
    {
        $this->workspace?->close();
        $this->workspace = null;
    }

    /** @param list<Page> $before whose files are made first */
    protected function runPage(Page $page, array $before = []): void
    {
        $needs = \array_values(\array_unique(\array_merge($page->needs, ...\array_map(static fn(Page $page): array => $page->needs, $before))));
        $missing = Workspace::missing($needs);
        $missing === null || self::markTestSkipped($missing);
        $this->workspace = new Workspace($needs);
        foreach ($before as $earlier) {
            (new Walkthrough($this->workspace, $earlier))->prepare();
        }
        (new Walkthrough($this->workspace, $page))->run();
    }

    /** @return array<string, array{string}> pages of a directory of docs/ by name, without its index */
    protected static function pages(string $directory, string $pattern = '*'): array
    {
        $pages = [];
        foreach (\glob(\dirname(__DIR__, 2) . "/docs/$directory/$pattern.md") ?: [] as $file) {
            $name = \basename($file, '.md');
            if ($name !== 'index') {
                $pages[$name] = [$file];
            }
        }

        return $pages;
    }
}
