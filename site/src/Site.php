<?php

declare(strict_types=1);

namespace Weft\Site;

use Weft\Bench\Report\HtmlPage;
use Weft\Bench\Report\Sources;
use Weft\Internal\ErrorDocumentation;
use Weft\Version;

/** Collects the pages in a directory, with the generated ones and the navigation, and has MkDocs make the site of them. */
final class Site
{
    /** Sections of the navigation by directory. The order within a section is that of the links on its index page; other pages follow. */
    private const SECTIONS = [
        'Tutorials' => 'tutorials', 'Guides' => 'guides', 'Reference' => 'reference', 'Explanation' => 'explanation',
        'Migrating' => 'migrating', 'Errors' => 'errors', 'Benchmarks' => 'benchmarks', 'Examples' => 'examples',
    ];
    /** The page of all results: charts, tables and raw data in one file, beside the pages of the benchmarks. */
    private const CHARTS = 'benchmarks/charts.html';
    /** Pages that belong to the section of another directory than theirs. */
    private const ELSEWHERE = ['architecture.md' => 'explanation', 'comparison.md' => 'migrating'];

    /** @var array<string, string> Markdown by place */
    private array $pages = [];
    private readonly PublicClasses $classes;

    public function __construct(private readonly string $root, private readonly string $directory)
    {
        $this->classes = PublicClasses::of("$root/src");
        if ($this->classes->missing !== []) {
            throw new \RuntimeException("Classes that cannot be loaded:\n" . \implode("\n", $this->classes->missing));
        }
    }

    public function collect(Pages $pages): void
    {
        $this->pages = $pages->all();
        foreach ((new Reference($this->root, $this->classes))->pages() as $file => $page) {
            $this->pages["reference/api/$file"] = $page;
        }
        $this->pages['reference/index.md'] .= "\n## API\n\nFrom the sources: [every public class](api/index.md), [options](api/options.md), [exceptions](api/exceptions.md), "
            . "[metrics](api/metrics.md).\n";
        $this->pages['benchmarks/index.md'] = (string) \preg_replace(
            '/^# .+\n\n/',
            "$0**[Charts of all published results](" . \basename(self::CHARTS) . ")**, with every run to filter and to save. The tables are on the pages of this section.\n\n",
            $this->pages['benchmarks/index.md'],
        );
        $this->pages['errors/index.md'] = \rtrim($this->pages['errors/index.md'] ?? "# Errors\n") . "\n\n" . $this->errors();
        if (!isset($this->pages['examples/index.md'])) {
            $this->pages['examples/index.md'] = $this->list('Examples', 'Whole programs with their tests.', 'examples');
        }
        self::remove("{$this->directory}/docs");
        foreach ($this->pages as $place => $page) {
            self::write("{$this->directory}/docs/$place", $page);
        }
        foreach (\glob("{$this->root}/site/assets/*") ?: [] as $asset) {
            self::write("{$this->directory}/docs/assets/" . \basename($asset), (string) \file_get_contents($asset));
        }
    }

    /** @return int the exit code of MkDocs */
    public function make(): int
    {
        $version = \implode('.', \array_slice(\explode('.', Version::LIBRARY), 0, 2));
        $html = "{$this->directory}/html";
        $settings = [
            'INHERIT' => "{$this->root}/mkdocs.yml",
            'docs_dir' => "{$this->directory}/docs",
            'site_dir' => "$html/$version",
            'nav' => $this->navigation(),
        ];
        // JSON is YAML.
        self::write("{$this->directory}/mkdocs.yml", (string) \json_encode($settings, \JSON_PRETTY_PRINT | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE));
        $mkdocs = (\getenv('WEFT_VAR') ?: "{$this->root}/var") . '/mkdocs/bin/mkdocs';
        if (!\is_file($mkdocs)) {
            \fwrite(\STDERR, "site/build: MkDocs is not there: scripts/setup docs installs it\n");

            return 1;
        }
        // The theme's advertisement of its successor.
        \putenv('NO_MKDOCS_2_WARNING=1');
        (new HtmlPage($this->root))->write(Sources::published($this->root), "{$this->directory}/docs/" . self::CHARTS, './');
        // With --quiet it would not count the warnings that --strict makes errors.
        \exec(\escapeshellarg($mkdocs) . ' build --strict --config-file ' . \escapeshellarg("{$this->directory}/mkdocs.yml") . ' 2>&1', $lines, $code);
        foreach (\preg_grep('/^INFO /', $lines, \PREG_GREP_INVERT) ?: [] as $line) {
            \fwrite(\STDERR, "$line\n");
        }
        if ($code === 0) {
            $this->versions($html, $version);
            echo "The site is in $html/$version\n";
        }

        return $code;
    }

    /** The list of versions beside their directories, which the menu of versions reads, and a page that leads to the newest one. */
    private function versions(string $html, string $newest): void
    {
        $versions = \array_map(basename(...), \glob("$html/*.*", \GLOB_ONLYDIR) ?: []);
        \usort($versions, static fn(string $a, string $b): int => \version_compare($b, $a));
        $entries = \array_map(static fn(string $version): array => ['version' => $version, 'title' => $version, 'aliases' => $version === $newest ? ['latest'] : []], $versions);
        self::write("$html/versions.json", (string) \json_encode($entries, \JSON_PRETTY_PRINT));
        self::write("$html/index.html", "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Weft</title>\n<meta http-equiv=\"refresh\" content=\"0; url=$newest/\">\n<a href=\"$newest/\">Weft $newest</a>\n");
    }

    /** @return list<array<string, mixed>> */
    private function navigation(): array
    {
        $navigation = [['Weft' => 'index.md']];
        foreach (self::SECTIONS as $title => $directory) {
            $entries = match ($directory) {
                'errors' => $this->errorEntries(),
                'reference' => [...$this->entries('reference'), ['API' => $this->entries('reference/api')]],
                default => $this->entries($directory),
            };
            $entries === [] || $navigation[] = [$title => $entries];
        }
        $navigation[] = ['Project' => [['Changelog' => 'changelog.md'], ['Contributing' => 'contributing.md']]];

        return $navigation;
    }

    /** @return list<array<string, string>> */
    private function entries(string $directory): array
    {
        $places = [];
        \preg_match_all('/\]\(([^)#\s]+\.md)/', $this->pages["$directory/index.md"] ?? '', $links);
        foreach ($links[1] as $link) {
            $places[] = \str_starts_with($link, '../') ? \substr($link, 3) : "$directory/$link";
        }
        $own = \array_filter(\array_keys($this->pages), static fn(string $place): bool => (\dirname($place) === $directory || (self::ELSEWHERE[$place] ?? '') === $directory));
        $ordered = \array_unique([...\array_intersect($places, $own), ...\array_values($own)]);
        $index = "$directory/index.md";
        $ordered = \array_values(\array_diff($ordered, [$index]));
        $entries = \array_map(fn(string $place): array => [$this->title($place) => $place], $ordered);

        return isset($this->pages[$index]) ? [['Overview' => $index], ...$entries] : $entries;
    }

    /** @return list<array<string, mixed>> */
    private function errorEntries(): array
    {
        $entries = [['Overview' => 'errors/index.md']];
        foreach ($this->errorGroups() as $group => $places) {
            $entries[] = [$group => \array_map(fn(string $place): array => [$this->title($place) => $place], $places)];
        }

        return $entries;
    }

    private function errors(): string
    {
        $parts = [];
        foreach ($this->errorGroups() as $group => $places) {
            $rows = \array_map(fn(string $place): array => [Markdown::link($this->title($place), \basename($place)), $this->sentence($place)], $places);
            $parts[] = "## $group\n\n" . Markdown::table(['', ''], $rows);
        }

        return \implode("\n\n", $parts) . "\n";
    }

    /** @return array<string, list<string>> places by package */
    private function errorGroups(): array
    {
        $groups = ['weft doctor' => []];
        foreach ($this->classes->throwables() as $class) {
            if (!$class->isInterface()) {
                $parts = \explode('\\', $class->getName());
                $groups[\count($parts) > 2 ? "Weft\\$parts[1]" : 'Weft'][] = 'errors/' . ErrorDocumentation::ofClass($class->getName())->name . '.md';
            }
        }
        foreach (\array_keys($this->pages) as $place) {
            \str_starts_with($place, 'errors/doctor-') && $groups['weft doctor'][] = $place;
        }
        \ksort($groups);

        return $groups;
    }

    private function list(string $title, string $text, string $directory): string
    {
        $places = \array_filter(\array_keys($this->pages), static fn(string $place): bool => \dirname($place) === $directory);
        $lines = \array_map(fn(string $place): string => '- ' . Markdown::link($this->title($place), \basename($place)), $places);

        return "# $title\n\n$text\n\n" . \implode("\n", $lines) . "\n";
    }

    private function title(string $place): string
    {
        return \preg_match('/^# (.+)$/m', $this->pages[$place] ?? '', $heading) === 1 ? \strtr($heading[1], ['`' => '']) : \basename($place, '.md');
    }

    /** The first sentence of a page, without links, for a list of pages. */
    private function sentence(string $place): string
    {
        $paragraphs = \array_filter(\explode("\n\n", $this->pages[$place] ?? ''), static fn(string $part): bool => \preg_match('/^[A-Z]|^`(?!Weft)/', $part) === 1);
        $first = (string) \reset($paragraphs);
        $first = (string) \preg_replace('/\[([^\]]+)\]\([^)]+\)/', '$1', $first);

        return \preg_match('/^.*?\.(?=\s|$)/s', $first, $sentence) === 1 ? $sentence[0] : $first;
    }

    private static function write(string $file, string $contents): void
    {
        \is_dir(\dirname($file)) || \mkdir(\dirname($file), recursive: true);
        \file_put_contents($file, $contents);
    }

    private static function remove(string $directory): void
    {
        if (\is_dir($directory)) {
            \exec('rm -rf ' . \escapeshellarg($directory));
            \clearstatcache();
        }
    }
}
