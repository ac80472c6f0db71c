<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Session;

/**
 * The formats in which PHP stores a session, by the names of `session.serialize_handler`: a store in a database or in Redis may be shared with
 * other servers.
 *
 * @internal
 */
enum Format: string
{
    case Php = 'php';
    case PhpBinary = 'php_binary';
    case PhpSerialize = 'php_serialize';
    case Igbinary = 'igbinary';

    /** A token of `serialize()` up to a text in it, whose length the group has. */
    private const TOKEN = '/\G(?:N;|[bi]:-?\d+;|d:[^;]*;|(?<reference>[rR]:(?<slot>\d+);)|a:\d+:(?<open>\{)|(?<close>\})|(?<type>[sSEOC]):(?<length>\d+):")/';

    /**
     * @param array<string, mixed> $options of the session in the configuration of the framework
     *
     * @throws \RuntimeException the setting names another format
     */
    public static function configured(array $options): self
    {
        $name = (string) ($options['serialize_handler'] ?? (\ini_get('session.serialize_handler') ?: 'php'));
        $format = self::tryFrom($name);
        if ($format === null || ($format === self::Igbinary && !\function_exists('igbinary_serialize'))) {
            throw new \RuntimeException(
                "The setting session.serialize_handler is \"$name\": Weft's sessions take php, php_serialize, php_binary, and igbinary with its extension",
            );
        }

        return $format;
    }

    /**
     * @param array<array-key, mixed> $data
     *
     * @throws \RuntimeException the format has no such key
     */
    public function encode(array $data): string
    {
        $whole = $this === self::Igbinary ? (string) \igbinary_serialize($data) : \serialize($data);
        if ($this === self::Igbinary || $this === self::PhpSerialize) {
            return $whole;
        }
        $encoded = '';
        $at = \strlen('a:' . \count($data) . ':{');
        foreach (\array_keys($data) as $key) {
            self::take($whole, $at, 0);
            // PHP counts what a reference refers to without the array around the values.
            $encoded .= $this->key((string) $key) . (string) self::take($whole, $at, -1);
        }

        return $encoded;
    }

    /** @return array<array-key, mixed>|null null: it is in another format, or damaged */
    public function decode(string $stored): ?array
    {
        $at = 0;
        if (\str_starts_with($stored, 'a:') && self::take($stored, $at, 0) !== null && $at === \strlen($stored)) {
            // Weft 0.2 has stored all sessions like this.
            return self::unserialized($stored);
        }
        if ($this === self::Igbinary) {
            $data = @\igbinary_unserialize($stored);

            return \is_array($data) ? $data : null;
        }

        return $this === self::PhpSerialize ? null : $this->decodeValues($stored);
    }

    /** @return array<array-key, mixed>|null */
    private function decodeValues(string $stored): ?array
    {
        $values = '';
        $count = 0;
        for ($at = 0; $at < \strlen($stored); $count++) {
            $length = $this === self::Php ? \strcspn($stored, '|', $at) : \ord($stored[$at]);
            $key = \substr($stored, $this === self::Php ? $at : $at + 1, $length);
            $at += $length + 1;
            $value = \strlen($key) === $length ? self::take($stored, $at, 1) : null;
            if ($value === null) {
                return null;
            }
            $values .= "s:$length:\"$key\";$value";
        }

        return self::unserialized("a:$count:{{$values}}");
    }

    private function key(string $key): string
    {
        if ($this === self::Php ? \strpbrk($key, '|!') !== false : \strlen($key) > 127) {
            throw new \RuntimeException("The session has the key \"$key\", which session.serialize_handler={$this->value} cannot store: use php_serialize");
        }

        return $this === self::Php ? "$key|" : \chr(\strlen($key)) . $key;
    }

    /** @return array<array-key, mixed>|null */
    private static function unserialized(string $text): ?array
    {
        $data = @\unserialize($text);

        return \is_array($data) ? $data : null;
    }

    /**
     * Takes one value of `serialize()`, and moves on behind it.
     *
     * @param int $shift is added to the numbers of references
     *
     * @return string|null null: there is none
     */
    private static function take(string $text, int &$at, int $shift): ?string
    {
        $taken = '';
        $copied = $at;
        $depth = 0;
        do {
            if (\preg_match(self::TOKEN, $text, $token, \PREG_UNMATCHED_AS_NULL, $at) !== 1) {
                return null;
            }
            if ($token['reference'] !== null) {
                $taken .= \substr($text, $copied, $at - $copied) . $token['reference'][0] . ':' . (int) $token['slot'] + $shift . ';';
                $copied = $at + \strlen($token[0]);
            }
            $at += \strlen($token[0]);
            $depth += ($token['open'] === null ? 0 : 1) - ($token['close'] === null ? 0 : 1);
            if ($token['type'] !== null) {
                $at += (int) $token['length'];
                $end = match ($token['type']) {
                    'O' => '/\G":\d+:\{/',
                    'C' => '/\G":(\d+):\{/',
                    default => '/\G";/',
                };
                $closed = [];
                if (\preg_match($end, $text, $closed, 0, $at) !== 1) {
                    return null;
                }
                $at += \strlen($closed[0]) + ($token['type'] === 'C' ? (int) $closed[1] + 1 : 0);
                $depth += $token['type'] === 'O' ? 1 : 0;
            }
        } while ($depth > 0);

        return $depth < 0 ? null : $taken . \substr($text, $copied, $at - $copied);
    }
}
