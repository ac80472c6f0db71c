<?php

declare(strict_types=1);

namespace Weft\Http\Internal\OpenApi;

/**
 * The text of a PHPDoc comment.
 *
 * @internal
 */
final class DocComment
{
    /** The text before the first tag, with the summary as its first paragraph. */
    public readonly string $text;
    private readonly string $tags;

    public function __construct(string|false $comment)
    {
        $lines = \preg_replace(['~^/\*\*[ \t]*~', '~\s*\*/$~', '~^[ \t]*\*[ \t]?~m'], '', (string) $comment);
        $text = \trim((string) $lines);
        $words = (string) \preg_replace('/^@.*/ms', '', $text);
        $this->text = self::unwrapped($words);
        $this->tags = \substr($text, \strlen($words));
    }

    public function summary(): string
    {
        return \rtrim(\explode("\n", $this->text, 2)[0], '.');
    }

    /** Behind the summary. */
    public function description(): string
    {
        return \trim(\explode("\n", $this->text, 2)[1] ?? '');
    }

    public function parameter(string $name): string
    {
        $found = [];
        \preg_match('/^@param\s+[^\n]*?\$' . \preg_quote($name, '/') . '\b[ \t]*(.*?)(?=^@|(?<!\S)@(?:param|return|throws)\b|\z)/ms', $this->tags, $found);

        return self::unwrapped($found[1] ?? '');
    }

    /** `{@see Name}` as `Name`, lines of a paragraph joined. */
    private static function unwrapped(string $text): string
    {
        $text = (string) \preg_replace('/\{@\w+\s+([^}]*)\}/', '$1', $text);

        return \trim((string) \preg_replace('/(?<!\n)\n(?![\n*-])\s*/', ' ', $text));
    }
}
