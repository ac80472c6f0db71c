<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Internal;

use Weft\Runtime\Realm;
use Weft\UsageError;

/**
 * The options of {@see \Weft\Bridge\Symfony\Runtime}. One that the environment has takes precedence.
 *
 * @internal
 */
final class RuntimeOptions
{
    /** @param array<array-key, mixed> $given `extra.runtime` of composer.json, with what the runtime adds */
    public function __construct(public readonly array $given)
    {
    }

    /**
     * The options for a command. `bin/console` may run in another runtime, which does not pass them on.
     *
     * @param string $directory of the project
     */
    public static function ofProject(string $directory): self
    {
        $file = "$directory/composer.json";
        $composer = \is_file($file) ? \json_decode((string) \file_get_contents($file), true) : null;
        $extra = \is_array($composer) ? $composer['extra']['runtime'] ?? [] : [];
        // Symfony's runtime reads these first, too.
        $own = $_SERVER['APP_RUNTIME_OPTIONS'] ?? $_ENV['APP_RUNTIME_OPTIONS'] ?? [];

        return new self((\is_array($own) ? $own : []) + (\is_array($extra) ? $extra : []));
    }

    public function value(string $option): mixed
    {
        return self::variable($option) ?? $this->given[$option] ?? null;
    }

    /** Where an option has its value from, for messages. */
    public function name(string $option): string
    {
        return self::variable($option) === null ? "\"$option\" in extra.runtime of composer.json" : 'WEFT_' . \strtoupper($option);
    }

    /**
     * Gives each kernel its own values of the static properties that `isolate` names. Before the first realm is made.
     *
     * @throws UsageError that names the option
     */
    public function isolate(): void
    {
        $properties = $this->value('isolate') ?? [];
        $properties = \is_array($properties) ? \array_map(\strval(...), $properties) : \array_filter(\array_map(\trim(...), \explode(',', (string) $properties)));
        $this->use('isolate', static fn() => Realm::isolate(...\array_values($properties)));
    }

    /**
     * @template R
     *
     * @param \Closure(): R $use uses the option
     *
     * @return R
     *
     * @throws UsageError that names the option
     */
    public function use(string $option, \Closure $use): mixed
    {
        try {
            return $use();
        } catch (\Error $refused) {
            throw new UsageError("{$this->name($option)}: {$refused->getMessage()}", previous: $refused);
        }
    }

    private static function variable(string $option): mixed
    {
        $variable = 'WEFT_' . \strtoupper($option);
        $given = $_SERVER[$variable] ?? $_ENV[$variable] ?? \getenv($variable);

        // An empty directory serves no files; of all others it is the default.
        return $given === false || $given === '' && $option !== 'public_dir' ? null : $given;
    }
}
