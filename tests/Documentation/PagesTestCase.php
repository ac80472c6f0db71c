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

    /** Runs pages one after the other in one directory. */
    protected function runPages(Page ...$pages): void
    {
        $needs = \array_values(\array_unique(\array_merge(...\array_map(static fn(Page $page): array => $page->needs, $pages))));
        $missing = Workspace::missing($needs);
        $missing === null || self::markTestSkipped($missing);
        $this->workspace = new Workspace($needs);
        foreach ($pages as $page) {
            (new Walkthrough($this->workspace, $page))->run();
        }
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
