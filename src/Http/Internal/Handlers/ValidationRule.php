<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Http\Fault;
use Weft\Internal\Codec\Mismatches;
use Weft\Validation\Internal\PropertyPath;
use Weft\Validation\Validator;
use Weft\Validation\Violation;

/**
 * That the objects in one argument of a handler are validated.
 *
 * @internal
 */
final class ValidationRule
{
    /** @param list<string> $groups empty for the default group */
    public function __construct(public readonly array $groups, private readonly bool $isBody)
    {
    }

    /**
     * @param array<int, self> $rules by the index of the argument
     * @param list<mixed> $values of all arguments
     *
     * @return list<Fault> at most 100
     */
    public static function check(array $rules, Validator $validator, array $values): array
    {
        $faults = [];
        foreach ($rules as $index => $rule) {
            foreach ($rule->faults($validator, $values[$index], '') as $fault) {
                $faults[] = $fault;
                if (\count($faults) === Mismatches::MAX_COUNT) {
                    return $faults;
                }
            }
        }

        return $faults;
    }

    /**
     * @param mixed $value an object, null, or lists and maps of these
     * @param string $at its JSON pointer
     *
     * @return iterable<Fault> validates each object when the faults of those before it are taken
     */
    private function faults(Validator $validator, mixed $value, string $at): iterable
    {
        foreach (\is_array($value) ? $value : [] as $key => $item) {
            yield from $this->faults($validator, $item, "$at/" . Mismatches::escaped((string) $key));
        }
        foreach (\is_object($value) ? $validator->validate($value, $this->groups) : [] as $violation) {
            yield $this->fault($at, $violation);
        }
    }

    private function fault(string $at, Violation $violation): Fault
    {
        $segments = PropertyPath::segments($violation->path);

        return $this->isBody
            ? Fault::inBody($at . \implode('', \array_map(static fn(string $segment): string => '/' . Mismatches::escaped($segment), $segments)), $violation->message)
            : Fault::inQuery($segments[0] ?? '', $violation->message);
    }
}
