<?php

declare(strict_types=1);

namespace Weft\Site;

/**
 * The pages of the site by their place in it, each from one file of the repository: docs, the changelog, the pages of benchmarks, and the
 * sources of the examples. Links between them lead to where the pages are in the site.
 */
final class Pages
{
    /** @var array<string, string> place in the site by file of the repository, both relative */
    private array $places = [];

    public function __construct(private readonly string $root)
    {
        foreach ($this->files('docs', 'md') as $file) {
            $this->places[$file] = \substr($file, \strlen('docs/'));
        }
        foreach ($this->files('bench', 'md') as $file) {
            if (!\str_ends_with($file, '.template.md')) {
                $name = \dirname(\substr($file, \strlen('bench/')));
                $page = \basename($file, '.md');
                $this->places[$file] = $name === '.' ? 'benchmarks/index.md' : "benchmarks/$name" . ($page === 'README' ? '' : "-$page") . '.md';
            }
        }
        $this->places['CHANGELOG.md'] = 'changelog.md';
        $this->places['CONTRIBUTING.md'] = 'contributing.md';
    }

    /** @return array<string, string> Markdown by place in the site */
    public function all(): array
    {
        $pages = [];
        foreach ($this->places as $file => $place) {
            $pages[$place] = self::withBars($this->relinked((string) \file_get_contents("$this->root/$file"), $file, $place));
        }
        foreach ($this->examples() as $name => $files) {
            $pages["examples/$name.md"] = $this->example($name, $files);
        }

        return $pages;
    }

    /** Links to other pages of the site are relative to the place; links to files that the site does not have become text. */
    private function relinked(string $text, string $file, string $place): string
    {
        // Code comes first, because its brackets are no links.
        $pattern = '/^```.*?^```$|\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]*)(#[^)\s]*)?\)|`[^`\n]*`/ms';

        return (string) \preg_replace_callback($pattern, function (array $link) use ($file, $place): string {
            $target = $link[2] ?? '';
            if ($target === '' || \str_contains($target, ':')) {
                return $link[0];
            }
            $wanted = $this->placeOf(self::normal(\dirname($file) . "/$target"));

            return $wanted === null ? $link[1] : "[$link[1]](" . self::relative($wanted, $place) . ($link[3] ?? '') . ')';
        }, $text);
    }

    /** In code within a table, other readers of Markdown need `\|` for a bar, and MkDocs shows the backslash. */
    private static function withBars(string $text): string
    {
        return (string) \preg_replace_callback(
            '/^\|.*$/m',
            static fn(array $row): string => (string) \preg_replace_callback('/`[^`]*`/', static fn(array $code): string => \str_replace('\|', '|', $code[0]), $row[0]),
            $text,
        );
    }

    private function placeOf(string $file): ?string
    {
        return match (true) {
            isset($this->places[$file]) => $this->places[$file],
            isset($this->places["$file/README.md"]) => $this->places["$file/README.md"],
            // Generated: MkDocs says so if it is not there.
            \str_starts_with($file, 'docs/reference/api') => \substr($file, \strlen('docs/')),
            $file === 'README.md' => 'index.md',
            \preg_match('~^examples/(\w+)(/|$)~', $file, $example) === 1 => "examples/$example[1].md",
            default => null,
        };
    }

    /** @return array<string, list<string>> files of each example, its page first */
    private function examples(): array
    {
        $examples = [];
        foreach (\glob("$this->root/examples/*", \GLOB_ONLYDIR) ?: [] as $directory) {
            $name = \basename($directory);
            $files = \array_filter(
                [...$this->files("examples/$name", 'php'), ...$this->files("examples/$name", 'proto')],
                static fn(string $file): bool => \preg_match('~/(var|vendor|Generated|node_modules)/~', $file) !== 1,
            );
            $files === [] || $examples[$name] = \array_values($files);
        }

        return $examples;
    }

    /** @param list<string> $files */
    private function example(string $name, array $files): string
    {
        $readme = "$this->root/examples/$name/README.md";
        $text = \is_file($readme) ? $this->relinked((string) \file_get_contents($readme), "examples/$name/README.md", "examples/$name.md") : "# Example: $name\n";
        $parts = [\rtrim($text), "The files of `examples/$name`:"];
        foreach ($files as $file) {
            $parts[] = '## ' . \substr($file, \strlen("examples/$name/"));
            $parts[] = Markdown::code(\rtrim((string) \file_get_contents("$this->root/$file")), \str_ends_with($file, '.proto') ? 'proto' : 'php');
        }

        return \implode("\n\n", $parts) . "\n";
    }

    /** @return list<string> relative to the root, sorted */
    private function files(string $directory, string $extension): array
    {
        $found = [];
        foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator("$this->root/$directory", \FilesystemIterator::SKIP_DOTS)) as $file) {
            $path = \substr($file->getPathname(), \strlen($this->root) + 1);
            if ($file->getExtension() === $extension && \preg_match('~/(out|node_modules|vendor|var|target)/~', $path) !== 1) {
                $found[] = $path;
            }
        }
        \sort($found);

        return $found;
    }

    private static function normal(string $path): string
    {
        $parts = [];
        foreach (\explode('/', $path) as $part) {
            if ($part === '..') {
                \array_pop($parts);
            } elseif ($part !== '.' && $part !== '') {
                $parts[] = $part;
            }
        }

        return \implode('/', $parts);
    }

    private static function relative(string $target, string $from): string
    {
        $there = \explode('/', $target);
        $here = \explode('/', $from);
        \array_pop($here);
        while ($here !== [] && \count($there) > 1 && $here[0] === $there[0]) {
            \array_shift($here);
            \array_shift($there);
        }

        return \str_repeat('../', \count($here)) . \implode('/', $there);
    }
}
