<?php

declare(strict_types=1);

namespace Weft\Tests\Memory;

/** Values of every kind, the same ones for the same seed. */
final class Arguments
{
    private int $state;

    public function __construct(int $seed)
    {
        $this->state = $seed & 0x7FFFFFFF;
    }

    /** @return list<mixed> values of the types that the function declares */
    public function fitting(\ReflectionFunctionAbstract $function): array
    {
        $arguments = [];
        foreach ($function->getParameters() as $parameter) {
            $arguments[] = $this->ofType((string) $parameter->getType());
        }

        return $arguments;
    }

    /** @return list<mixed> mostly of the types that the function declares, now and then of others, too few or too many */
    public function random(\ReflectionFunctionAbstract $function): array
    {
        $arguments = [];
        foreach ($this->fitting($function) as $argument) {
            $arguments[] = $this->below(6) === 0 ? $this->any() : $argument;
        }
        match ($this->below(20)) {
            0 => array_pop($arguments),
            1 => $arguments[] = $this->any(),
            default => null,
        };

        return $arguments;
    }

    public function below(int $bound): int
    {
        $this->state = ($this->state * 1103515245 + 12345) & 0x7FFFFFFF;

        return ($this->state >> 8) % $bound;
    }

    private function ofType(string $type): mixed
    {
        if ($type !== '' && $type[0] === '?') {
            return $this->below(3) === 0 ? null : $this->ofType(substr($type, 1));
        }

        return match ($type) {
            'int' => $this->oneOf([0, 1, -1, 7, 1000, 65536, PHP_INT_MAX, PHP_INT_MIN]),
            'float' => $this->oneOf([0.0, 0.001, -1.5, 1e308, INF, -INF, NAN]),
            'bool' => $this->below(2) === 0,
            'string' => $this->text(),
            'array' => $this->collection(),
            'object' => $this->object(),
            default => $this->any(),
        };
    }

    private function any(): mixed
    {
        return match ($this->below(8)) {
            0 => null,
            1 => $this->below(2) === 0,
            2 => $this->ofType('int'),
            3 => $this->ofType('float'),
            4, 5 => $this->text(),
            6 => $this->collection(),
            default => $this->object(),
        };
    }

    private function text(): string
    {
        return $this->oneOf([
            '', 'a', 'SELECT 1', 'SELECT ?', 'gzip', "\xFF\xFE", "a\0b", '127.0.0.1:0', 'sqlite::memory:', 'content-type', 'text/html',
            str_repeat('x', 70_000), '7', ':name', 'Weft\Tests\Protobuf\Generated\Everything\Everything', "\x08\x96\x01", '{"int32": 7}',
        ]);
    }

    /** @return array<mixed> */
    private function collection(int $depth = 0): array
    {
        $array = [];
        for ($entries = $this->below(4); $entries > 0; $entries--) {
            $value = $depth < 3 && $this->below(3) === 0 ? $this->collection($depth + 1) : $this->any();
            match ($this->below(3)) {
                0 => $array[] = $value,
                1 => $array[$this->text()] = $value,
                default => $array[] = &$value,
            };
            if ($this->below(6) === 0) {
                $array[] = self::disturber($array);
            }
            unset($value);
        }
        if ($this->below(10) === 0) {
            $array['itself'] = &$array;
        }

        return $array;
    }

    private function object(): object
    {
        return match ($this->below(8)) {
            0 => new \stdClass,
            1 => (object) $this->collection(2),
            2 => new \ArrayObject([1]),
            3 => static fn(): int => 7,
            4 => new \SensitiveParameterValue($this->oneOf(['sqlite::memory:', '', "\xFF", 7, 'sqlite:///none/none.db'])),
            5 => new \DateTimeImmutable('@7'),
            6 => new Callback(static fn(): never => throw new \DomainException('on purpose')),
            default => (new \ReflectionClass(\Weft\Native\HttpRequest::class))->newInstanceWithoutConstructor(),
        };
    }

    /**
     * Empties the array that contains it.
     *
     * @param array<mixed> $array
     */
    private static function disturber(array &$array): Callback
    {
        return new Callback(static function () use (&$array): int {
            $array = [];

            return 7;
        });
    }

    /**
     * @template T
     *
     * @param list<T> $values
     *
     * @return T
     */
    private function oneOf(array $values): mixed
    {
        return $values[$this->below(count($values))];
    }
}
