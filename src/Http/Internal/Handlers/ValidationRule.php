<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Http\Fault;
use Weft\Internal\Codec\Mismatches;
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
            foreach ($rule->faults($validator, $values[$index]) as $fault) {
                $faults[] = $fault;
                if (\count($faults) === Mismatches::MAX_COUNT) {
                    return $faults;
                }
            }
        }

        return $faults;
    }

    /** @return iterable<Fault> validates each object when the faults of those before it are taken */
    private function faults(Validator $validator, mixed $value): iterable
    {
        $objects = \is_array($value) ? $value : ['' => $value];
        foreach ($objects as $key => $object) {
            foreach (\is_object($object) ? $validator->validate($object, $this->groups) : [] as $violation) {
                yield $this->fault($key === '' ? '' : "/$key", $violation);
            }
        }
    }

    private function fault(string $prefix, Violation $violation): Fault
    {
        $segments = \preg_split('/[.\[\]]+/', $violation->path, flags: \PREG_SPLIT_NO_EMPTY) ?: [];

        return $this->isBody
            ? Fault::inBody($prefix . \implode('', \array_map(static fn(string $segment): string => '/' . \strtr($segment, ['~' => '~0', '/' => '~1']), $segments)), $violation->message)
            : Fault::inQuery($segments[0] ?? '', $violation->message);
    }
}
