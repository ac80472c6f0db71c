<?php

declare(strict_types=1);

namespace Weft\Examples\Rinha;

/** A person as the rules allow it. Lengths are in characters. */
final class Person
{
    private const NICKNAME_LENGTH = 32;
    private const NAME_LENGTH = 100;
    private const SKILL_LENGTH = 32;

    /** @param list<string>|null $stack */
    private function __construct(
        public readonly string $nickname,
        public readonly string $name,
        public readonly string $birthday,
        public readonly ?array $stack,
    ) {
    }

    /**
     * @throws Malformed for a value of the wrong type
     * @throws Unacceptable for one of the right type that the rules exclude
     */
    public static function fromJson(string $json): self
    {
        $fields = \json_decode($json, false, 8);
        if (!$fields instanceof \stdClass) {
            throw new Malformed('The body must be a JSON object');
        }
        // All types first: what is malformed stays so, whatever else is wrong with it.
        $nickname = self::type($fields, 'apelido');
        $name = self::type($fields, 'nome');
        $birthday = self::type($fields, 'nascimento');
        $stack = self::list($fields->stack ?? null);

        return new self(
            self::text($nickname, 'apelido', self::NICKNAME_LENGTH),
            self::text($name, 'nome', self::NAME_LENGTH),
            self::date($birthday),
            $stack === null ? null : \array_map(static fn (string $skill): string => self::text($skill, 'stack', self::SKILL_LENGTH), $stack),
        );
    }

    public function stackJson(): ?string
    {
        $flags = \JSON_UNESCAPED_UNICODE | \JSON_UNESCAPED_SLASHES | \JSON_THROW_ON_ERROR;

        return $this->stack === null ? null : \json_encode($this->stack, $flags);
    }

    private static function type(\stdClass $fields, string $field): ?string
    {
        $value = $fields->{$field} ?? null;

        return $value === null || \is_string($value)
            ? $value
            : throw new Malformed("{$field} must be a string, not " . \get_debug_type($value));
    }

    /** @return list<string>|null */
    private static function list(mixed $value): ?array
    {
        if ($value !== null && !\is_array($value)) {
            throw new Malformed('stack must be an array of strings or null, not ' . \get_debug_type($value));
        }
        foreach ($value ?? [] as $item) {
            \is_string($item) || throw new Malformed('stack must hold strings, not ' . \get_debug_type($item));
        }

        return $value;
    }

    private static function text(?string $value, string $field, int $length): string
    {
        return match (true) {
            $value === null => throw new Unacceptable("{$field} is required"),
            $value === '' => throw new Unacceptable("{$field} must not be empty"),
            \mb_strlen($value) > $length => throw new Unacceptable("{$field} must have at most {$length} characters"),
            // PostgreSQL's text cannot hold it.
            \str_contains($value, "\0") => throw new Unacceptable("{$field} must not contain U+0000"),
            default => $value,
        };
    }

    private static function date(?string $value): string
    {
        $isDate = \preg_match('/^(\d{4})-(\d\d)-(\d\d)$/D', $value ?? '', $part)
            && \checkdate((int) $part[2], (int) $part[3], (int) $part[1]);

        return $isDate ? $value : throw new Unacceptable('nascimento must be a date that exists, as YYYY-MM-DD');
    }
}
