<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Http\Fault;
use Weft\Internal\Codec\Mismatches;
use Weft\Validation\Validator;
use Weft\Validation\Violation;

/**
 * Which arguments of a handler are validated.
 *
 * @internal
 */
final class ValidationRule
{
    /**
     * @param list<string> $groups
     * @param int $index of the argument
     */
    public function __construct(public readonly array $groups, public readonly int $index, private readonly bool $isBody)
    {
    }

    /**
     * @param list<mixed> $values
     *
     * @return list<Fault> at most 100
     */
    public function check(Validator $validator, array $values): array
    {
        $objects = \is_array($values[$this->index]) ? $values[$this->index] : ['' => $values[$this->index]];
        $faults = [];
        foreach ($objects as $key => $object) {
            foreach (\is_object($object) ? $validator->validate($object, $this->groups) : [] as $violation) {
                $faults[] = $this->fault($key === '' ? '' : "/$key", $violation);
                if (\count($faults) === Mismatches::MAX_COUNT) {
                    return $faults;
                }
            }
        }

        return $faults;
    }

    private function fault(string $prefix, Violation $violation): Fault
    {
        $segments = \preg_split('/[.\[\]]+/', $violation->path, flags: \PREG_SPLIT_NO_EMPTY) ?: [];

        return $this->isBody
            ? Fault::inBody($prefix . \implode('', \array_map(static fn(string $segment): string => '/' . \strtr($segment, ['~' => '~0', '/' => '~1']), $segments)), $violation->message)
            : Fault::inQuery($segments[0] ?? '', $violation->message);
    }
}
