<?php

declare(strict_types=1);

namespace Weft\Site;

/** Pieces of Markdown. */
final class Markdown
{
    private function __construct() {}

    public static function code(string $code, string $language = 'php'): string
    {
        return "```$language\n$code\n```";
    }

    public static function link(string $text, string $target): string
    {
        return "[$text]($target)";
    }

    /**
     * @param list<string> $head
     * @param list<list<string>> $rows
     */
    public static function table(array $head, array $rows): string
    {
        $line = static fn(array $cells): string => '| ' . \implode(' | ', \array_map(self::cell(...), $cells)) . ' |';

        return \implode("\n", [$line($head), '|' . \str_repeat('---|', \count($head)), ...\array_map($line, $rows)]);
    }

    /** A cell is one line. A bar would end it, except in code. */
    private static function cell(string $text): string
    {
        $text = (string) \preg_replace('/```\w*\n(.*?)\n```/s', '`$1`', $text);

        return (string) \preg_replace('/`[^`]*`(*SKIP)(*FAIL)|\|/', '\\|', \trim((string) \preg_replace('/\s+/', ' ', $text)));
    }
}
