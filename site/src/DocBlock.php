<?php

declare(strict_types=1);

namespace Weft\Site;

/** A PHPDoc comment: its text, which is Markdown, and its tags. */
final class DocBlock
{
    /** @param list<array{string, string}> $tags name without `@`, and content */
    private function __construct(public readonly string $text, private readonly array $tags) {}

    public static function of(string|false $comment): self
    {
        $lines = \explode("\n", (string) \preg_replace(['~^/\*\*[ \t]?~', '~[ \t]*\*/$~'], '', (string) $comment));
        $lines = \array_map(static fn(string $line): string => \rtrim((string) \preg_replace('~^\s*\* ?~', '', $line)), $lines);
        $text = [];
        $tags = [];
        $isCode = false;
        foreach ($lines as $line) {
            $isCode = $isCode !== \str_starts_with(\ltrim($line), '```');
            if (!$isCode && \preg_match('/^@([\w-]+)\s*(.*)$/', $line, $found) === 1) {
                $tags[] = [$found[1], $found[2]];
            } elseif ($tags === []) {
                $text[] = $line;
            } else {
                $tags[\count($tags) - 1][1] .= "\n" . \ltrim($line);
            }
        }

        return new self(\trim(\implode("\n", $text)), \array_map(static fn(array $tag): array => [$tag[0], \trim($tag[1])], $tags));
    }

    public function isInternal(): bool
    {
        return $this->contents('internal') !== [];
    }

    /** @return array{type: string, text: string} both empty if the comment says nothing about the parameter */
    public function parameter(string $name): array
    {
        foreach ($this->contents('param') as $content) {
            if (\preg_match('/^(.*?)\s*(?:\.\.\.)?&?\$' . \preg_quote($name, '/') . '\b\s*(.*)$/s', $content, $found) === 1 && !\str_contains($found[1], '$')) {
                return ['type' => $found[1], 'text' => self::line($found[2])];
            }
        }

        return ['type' => '', 'text' => ''];
    }

    /** @return array{type: string, text: string} */
    public function result(): array
    {
        return self::split($this->contents('return')[0] ?? '');
    }

    /** @return array{type: string, text: string} */
    public function variable(): array
    {
        return self::split($this->contents('var')[0] ?? '');
    }

    /** @return list<array{type: string, text: string}> */
    public function failures(): array
    {
        return \array_map(self::split(...), $this->contents('throws'));
    }

    /** @return list<string> */
    private function contents(string $tag): array
    {
        return \array_column(\array_filter($this->tags, static fn(array $entry): bool => $entry[0] === $tag), 1);
    }

    /**
     * A type ends at the first space outside of brackets that does not follow `:`, `|` or `,`.
     *
     * @return array{type: string, text: string}
     */
    private static function split(string $content): array
    {
        $depth = 0;
        for ($at = 0; $at < \strlen($content); $at++) {
            $depth += match ($content[$at]) {
                '<', '{', '(', '[' => 1,
                '>', '}', ')', ']' => -1,
                default => 0,
            };
            if ($depth === 0 && \ctype_space($content[$at]) && !\in_array($content[\max(0, $at - 1)], [':', '|', ','], true)) {
                break;
            }
        }

        return ['type' => self::line(\substr($content, 0, $at)), 'text' => self::line(\substr($content, $at))];
    }

    private static function line(string $text): string
    {
        return \trim((string) \preg_replace('/\s+/', ' ', $text));
    }
}
