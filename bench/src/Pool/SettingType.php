<?php

declare(strict_types=1);

namespace Weft\Bench\Pool;

enum SettingType
{
    case Boolean;
    /** Above 0. */
    case Count;
    /** 0 or above. */
    case Number;
    /** 0 or above, with fractions. */
    case Seconds;
    case Text;

    public function description(): string
    {
        return match ($this) {
            self::Boolean => 'on, off, true, false, 1 or 0',
            self::Count => 'a whole number above 0',
            self::Number => 'a whole number, 0 or above',
            self::Seconds => 'seconds, 0 or above',
            self::Text => 'text',
        };
    }

    /** @return bool|int|float|string|null null when the text is no such value */
    public function parse(string $text): bool|int|float|string|null
    {
        return match ($this) {
            self::Boolean => filter_var($text, FILTER_VALIDATE_BOOLEAN, FILTER_NULL_ON_FAILURE | FILTER_REQUIRE_SCALAR),
            self::Count => self::whole($text, 1),
            self::Number => self::whole($text, 0),
            self::Seconds => is_numeric($text) && (float) $text >= 0.0 && is_finite((float) $text) ? (float) $text : null,
            self::Text => $text,
        };
    }

    private static function whole(string $text, int $least): ?int
    {
        return filter_var($text, FILTER_VALIDATE_INT, ['options' => ['min_range' => $least, 'default' => null]]);
    }
}
