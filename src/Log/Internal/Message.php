<?php

declare(strict_types=1);

namespace Weft\Log\Internal;

use Weft\Internal\Printable;

/**
 * Interpolates the `{placeholders}` of a message from its context (PSR-3 §1.2). Values are inserted once and not searched for
 * placeholders. Exceptions are not inserted, since their text may be as long as the request they quote.
 *
 * @internal
 */
final class Message
{
    /** Bytes of the message before and after interpolation. */
    public const MAX_BYTES = 16_384;
    /** Bytes of a value. */
    public const VALUE_BYTES = 8_192;

    /** @param array<string, true> $filled context keys that the text contains */
    private function __construct(public readonly string $text, public readonly array $filled)
    {
    }

    /** @param array<array-key, mixed> $context */
    public static function of(string $template, array $context): self
    {
        $text = '';
        $filled = [];
        $template = Printable::cut($template, self::MAX_BYTES);
        // Every second part is a placeholder.
        foreach (\preg_split('/(\{[^{}\s]{1,100}\})/', $template, -1, \PREG_SPLIT_DELIM_CAPTURE) ?: [] as $at => $part) {
            $name = $at % 2 === 1 ? \substr($part, 1, -1) : null;
            $value = $name === null ? null : self::value($context[$name] ?? null);
            if ($name !== null && $value !== null) {
                $filled[$name] = true;
            }
            $text .= $value ?? $part;
            if (\strlen($text) > self::MAX_BYTES) {
                break;
            }
        }

        return new self(\strlen($text) > self::MAX_BYTES ? self::shortened($text) : $text, $filled);
    }

    private static function shortened(string $text): string
    {
        return (string) \preg_replace('/[\xC0-\xFF][\x80-\xBF]{0,2}$/D', '', \substr($text, 0, self::MAX_BYTES)) . '…';
    }

    private static function value(mixed $value): ?string
    {
        if ($value instanceof \Throwable) {
            return null;
        }
        if (!\is_scalar($value) && !$value instanceof \Stringable && !$value instanceof \DateTimeInterface) {
            return null;
        }
        $plain = Context::plain($value);

        return \is_bool($plain) ? \var_export($plain, true) : (string) $plain;
    }
}
