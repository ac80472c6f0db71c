<?php

declare(strict_types=1);

namespace Weft\Tests\Site;

use PHPUnit\Framework\TestCase;
use Weft\Site\Pages;
use Weft\Tests\Chromium;
use Weft\Version;

require_once __DIR__ . '/../../site/autoload.php';

/** The links of the pages, and the site that is made of them, as a browser shows it. */
final class SiteTest extends TestCase
{
    private const ROOT = __DIR__ . '/../..';

    public function testEveryLinkOfADocumentLeadsToAFile(): void
    {
        $links = 0;
        foreach (self::documents() as $file) {
            $text = (string) \preg_replace('/^```.*?^```$|`[^`\n]*`(?!\]\()/ms', '', (string) \file_get_contents($file));
            \preg_match_all('/\]\(([^)#\s]+)(?:#[^)\s]*)?\)/', $text, $found);
            foreach ($found[1] as $link) {
                // The reference is generated into this directory.
                if (!\str_contains($link, ':') && !\str_contains($link, 'reference/api') && !\str_starts_with($link, 'api/')) {
                    self::assertFileExists(\dirname($file) . "/$link", \substr($file, \strlen(self::ROOT) + 1));
                    $links++;
                }
            }
        }
        self::assertGreaterThan(150, $links);
    }

    public function testLinksBetweenPagesLeadToTheirPlacesInTheSite(): void
    {
        $pages = (new Pages(\dirname(__DIR__, 2)))->all();

        self::assertStringContainsString('](../benchmarks/index.md)', $pages['explanation/performance.md']);
        self::assertStringContainsString('](../examples/shop.md)', $pages['tutorials/getting-started.md']);
        self::assertStringContainsString('](../explanation/performance.md)', $pages['benchmarks/index.md']);
        self::assertStringContainsString('final class', $pages['examples/shop.md']);
        self::assertArrayHasKey('errors/pool-exhausted.md', $pages);
    }

    public function testCodeThatLooksLikeALinkStaysAsItIs(): void
    {
        $page = (new Pages(\dirname(__DIR__, 2)))->all()['reference/pool.md'];
        $source = (string) \file_get_contents(self::ROOT . '/docs/reference/pool.md');
        \preg_match_all('/^```php\n.*?^```$/ms', $source, $blocks);

        self::assertNotSame([], $blocks[0]);
        foreach ($blocks[0] as $block) {
            self::assertStringContainsString($block, $page);
        }
    }

    public function testTheSiteIsMadeAndABrowserShowsIt(): void
    {
        $tools = (\getenv('WEFT_VAR') ?: self::ROOT . '/var');
        if (!\is_file("$tools/mkdocs/version") || !\is_file("$tools/site-check/versions")) {
            self::markTestSkipped('MkDocs or the driver of the browser is not installed: scripts/setup docs');
        }
        Chromium::program();
        $directory = \sys_get_temp_dir() . '/weft-site-' . \bin2hex(\random_bytes(6));
        \mkdir($directory);
        try {
            foreach (['mkdocs', 'site-check'] as $tool) {
                \symlink((string) \realpath("$tools/$tool"), "$directory/$tool");
            }
            // The pages of an earlier version stay.
            \mkdir("$directory/site/html/0.0", recursive: true);
            \file_put_contents("$directory/site/html/0.0/index.html", '<!doctype html><title>Weft 0.0</title>');
            \file_put_contents("$directory/site/html/0.0/sitemap.xml", '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"></urlset>');

            [$code, $output] = self::execute($directory, \PHP_BINARY . ' -d extension=' . \escapeshellarg((string) \getenv('WEFT_EXTENSION')) . ' site/build');
            self::assertSame(0, $code, $output);
            $versions = \json_decode((string) \file_get_contents("$directory/site/html/versions.json"), true, flags: \JSON_THROW_ON_ERROR);
            self::assertIsArray($versions);
            self::assertSame([\implode('.', \array_slice(\explode('.', Version::LIBRARY), 0, 2)), '0.0'], \array_column($versions, 'version'));
            self::assertSame([['latest'], []], \array_column($versions, 'aliases'));

            [$code, $output] = self::execute($directory, "node site/check.mjs '' errors/pool-exhausted/");
            self::assertSame(0, $code, $output);
            self::assertCount(15, \glob("$directory/site/screenshots/*.png") ?: [], $output);
        } finally {
            \exec('rm -rf ' . \escapeshellarg($directory));
        }
    }

    /** @return array{int, string} exit code and output */
    private static function execute(string $directory, string $command): array
    {
        \exec('cd ' . \escapeshellarg(self::ROOT) . ' && WEFT_VAR=' . \escapeshellarg($directory) . ' TMPDIR=' . \escapeshellarg($directory) . " $command 2>&1", $lines, $code);

        return [$code, \implode("\n", $lines)];
    }

    /** @return list<string> */
    private static function documents(): array
    {
        $files = [self::ROOT . '/README.md', self::ROOT . '/CONTRIBUTING.md', self::ROOT . '/CHANGELOG.md', ...(\glob(self::ROOT . '/bench/*.md') ?: []), ...(\glob(self::ROOT . '/bench/*/{README,notes}.md', \GLOB_BRACE) ?: [])];
        foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator(self::ROOT . '/docs', \FilesystemIterator::SKIP_DOTS)) as $file) {
            $file->getExtension() !== 'md' || $files[] = $file->getPathname();
        }

        return $files;
    }
}
