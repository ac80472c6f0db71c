<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Schema;

/**
 * Compares two schemas and finds changes that break programs: those that read messages of older programs and, while both run, older programs
 * that read messages of newer ones.
 *
 * @internal
 */
final class Comparison
{
    /** @var list<string> */
    public array $breaking = [];

    /** @var list<string> */
    public array $compatible = [];

    public function __construct(Schema $old, Schema $new)
    {
        foreach ($old->messages as $type => $message) {
            isset($new->messages[$type])
                ? $this->message((string) $type, $message, $new->messages[$type])
                : $this->breaking[] = "{$type}: was removed; messages of this type may be in flight";
        }
        foreach (\array_diff_key($new->messages, $old->messages) as $type => $message) {
            $this->compatible[] = "{$type}: was added";
        }
    }

    /**
     * @param array{class: string, version: int, fields: array<string, array{type: mixed, optional: bool}>, upcasts: list<int>} $old
     * @param array{class: string, version: int, fields: array<string, array{type: mixed, optional: bool}>, upcasts: list<int>} $new
     */
    private function message(string $type, array $old, array $new): void
    {
        $breaking = $compatible = [];
        self::fields('$', $old['fields'], $new['fields'], $breaking, $compatible);
        if ($new['version'] < $old['version']) {
            $this->breaking[] = "{$type}: version {$old['version']} was changed to {$new['version']}";
        } elseif ($new['version'] > $old['version']) {
            $missing = \array_diff(\range($old['version'], $new['version'] - 1), $new['upcasts'] ?? []);
            $changes = [...$breaking, ...$compatible, "version {$old['version']} was changed to {$new['version']}"];
            if ($breaking !== [] && $missing !== []) {
                $this->breaking[] = "{$type}: " . \implode('; ', $breaking) . '; no upcaster takes version ' . \implode(' and ', $missing);
            } else {
                \array_push($this->compatible, ...self::prefixed($type, $changes));
            }

            return;
        }
        \array_push($this->breaking, ...self::prefixed($type, $breaking));
        \array_push($this->compatible, ...self::prefixed($type, $compatible));
        $lost = \array_diff($old['upcasts'] ?? [], $new['upcasts'] ?? []);
        if ($lost !== []) {
            $this->breaking[] = "{$type}: the upcaster from version " . \implode(' and ', $lost) . ' was removed';
        }
    }

    /**
     * @param array<string, array{type: mixed, optional: bool}> $old
     * @param array<string, array{type: mixed, optional: bool}> $new
     * @param list<string>                                      $breaking
     * @param list<string>                                      $compatible
     */
    private static function fields(string $path, array $old, array $new, array &$breaking, array &$compatible): void
    {
        foreach ($old as $name => $field) {
            $at = "{$path}.{$name}";
            if (!isset($new[$name])) {
                $breaking[] = "{$at} (" . self::text($field['type']) . ') was removed';
                continue;
            }
            self::type($at, $field['type'], $new[$name]['type'], $breaking, $compatible);
            if ($field['optional'] && !$new[$name]['optional']) {
                $breaking[] = "{$at} no longer has a default";
            }
        }
        foreach (\array_diff_key($new, $old) as $name => $field) {
            $text = "{$path}.{$name} (" . self::text($field['type']) . ') was added';
            $field['optional'] ? $compatible[] = $text : $breaking[] = "{$text} and has no default";
        }
    }

    /**
     * @param list<string> $breaking
     * @param list<string> $compatible
     */
    private static function type(string $at, mixed $old, mixed $new, array &$breaking, array &$compatible): void
    {
        // A lock of Weft 0.1 has a type that is nullable in its PHPDoc as well as nullable twice.
        while (isset($old['nullable']['nullable'])) {
            $old = $old['nullable'];
        }
        if ($old === $new) {
            return;
        }
        $kind = \is_array($old) && \is_array($new) && \array_keys($old) === \array_keys($new) ? \array_key_first($old) : null;
        /** @var array{object: array<string, array{type: mixed, optional: bool}>|string, list: mixed, map: mixed, nullable: mixed, enum: list<string|int>} $was has the key `$kind` */
        $was = $old;
        /** @var array{object: array<string, array{type: mixed, optional: bool}>|string, list: mixed, map: mixed, nullable: mixed, enum: list<string|int>} $is */
        $is = $new;
        match (true) {
            $kind === 'object' && \is_array($was['object']) && \is_array($is['object']) => self::fields($at, $was['object'], $is['object'], $breaking, $compatible),
            $kind === 'list' => self::type("{$at}[*]", $was['list'], $is['list'], $breaking, $compatible),
            $kind === 'map' => self::type("{$at}[*]", $was['map'], $is['map'], $breaking, $compatible),
            $kind === 'nullable' => self::type($at, $was['nullable'], $is['nullable'], $breaking, $compatible),
            $kind === 'enum' && \array_diff($was['enum'], $is['enum']) === [] => $compatible[] = "{$at} may also be " . \implode(', ', \array_diff($is['enum'], $was['enum'])),
            default => $breaking[] = "{$at} was " . self::text($old) . ' and is ' . self::text($new),
        };
    }

    private static function text(mixed $type): string
    {
        if (!\is_array($type)) {
            return (string) $type;
        }
        $kind = (string) \array_key_first($type);

        return match ($kind) {
            'nullable' => '?' . self::text($type[$kind]),
            'enum' => 'enum ' . \implode('|', $type[$kind]),
            'object' => 'object',
            default => "{$kind} of " . self::text($type[$kind]),
        };
    }

    /**
     * @param list<string> $changes
     * @return list<string>
     */
    private static function prefixed(string $type, array $changes): array
    {
        return \array_map(static fn(string $change): string => "{$type}: {$change}", $changes);
    }
}
