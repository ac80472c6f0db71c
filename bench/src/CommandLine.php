<?php

declare(strict_types=1);

namespace Weft\Bench;

/** The `--name=value` arguments of a benchmark, every one with a default. */
final class CommandLine
{
    /** @param array<string, string> $values */
    private function __construct(private readonly array $values)
    {
    }

    /**
     * @param list<string> $arguments without the program's name; `--name` alone means `--name=1`
     * @param array<string, string> $defaults by name; these names are all there are
     *
     * @throws BenchmarkException for an unknown argument
     */
    public static function parse(array $arguments, array $defaults): self
    {
        $values = $defaults;
        foreach ($arguments as $argument) {
            if (!preg_match('/^--([a-z-]+)(?:=(.*))?$/', $argument, $match) || !isset($defaults[$match[1]])) {
                $valid = implode(' ', array_map(static fn (string $name): string => "--$name", array_keys($defaults)));
                throw new BenchmarkException("unknown option $argument, there are: $valid");
            }
            $values[$match[1]] = $match[2] ?? '1';
        }

        return new self($values);
    }

    public function text(string $name): string
    {
        return $this->values[$name];
    }

    public function flag(string $name): bool
    {
        return !in_array($this->values[$name], ['', '0'], true);
    }

    /** @return list<string> the values between commas; none for an empty value */
    public function names(string $name): array
    {
        return $this->values[$name] === '' ? [] : explode(',', $this->values[$name]);
    }

    /** @throws BenchmarkException when it is not a whole number above 0 */
    public function positive(string $name): int
    {
        $value = $this->values[$name];

        return ctype_digit($value) && (int) $value > 0
            ? (int) $value
            : throw new BenchmarkException("--$name must be a whole number above 0, got '$value'");
    }

    /**
     * @return list<int>
     *
     * @throws BenchmarkException when one of them is not a whole number above 0
     */
    public function positives(string $name): array
    {
        return array_map(
            static fn (string $value): int => ctype_digit($value) && (int) $value > 0
                ? (int) $value
                : throw new BenchmarkException("--$name must be whole numbers above 0, got '$value'"),
            $this->names($name),
        );
    }
}
