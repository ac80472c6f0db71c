<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Http\Fault;
use Weft\Http\HttpException;
use Weft\Http\Request;
use Weft\Internal\Codec\Enumeration;
use Weft\Internal\Codec\Instance;
use Weft\Internal\Codec\Map;
use Weft\Internal\Codec\Mismatches;
use Weft\Internal\Codec\MismatchException;
use Weft\Internal\Codec\Optional;
use Weft\Internal\Codec\Sequence;
use Weft\Internal\Codec\Type;

/**
 * The body, decoded from JSON.
 *
 * @internal
 */
final class BodyArgument implements Argument
{
    private const JSON = '~^application/(?:[\w.+-]+\+)?json\s*(?:;|$)~Di';

    /** What may be an empty list or object, or an object with the keys of a list: decoded to arrays, which is fast, they are the same. */
    private const AMBIGUOUS = '~\[\s*\]|\{\s*\}|"(?:0|\\\\u0030)"\s*:~';
    /** A map would take any list. */
    private const AMBIGUOUS_WITH_MAPS = '~\[|\{\s*\}|"(?:0|\\\\u0030)"\s*:~';

    /** Null until the first body: looking for it compiles the classes of the type. */
    private ?bool $hasMap = null;

    public function __construct(public readonly Type $type)
    {
    }

    public function value(Request $request): mixed
    {
        $contentType = $request->header('content-type') ?? '';
        if ($contentType !== 'application/json' && \preg_match(self::JSON, $contentType) !== 1) {
            // Also keeps forms of other sites out, whose requests browsers send without asking.
            throw new HttpException(415, 'The body must be JSON, with the content type application/json', ['accept-post' => 'application/json']);
        }
        $body = $request->body();
        $data = \json_decode($body, true);
        if ($data === null && $body !== 'null') {
            $detail = $body === '' ? 'the body is empty; expected JSON' : 'the body is not JSON: ' . \json_last_error_msg();
            \json_last_error() === \JSON_ERROR_NONE || throw new FaultsException(400, [Fault::inBody('', $detail)]);
        }
        try {
            $value = $this->type->decode($data);
        } catch (MismatchException | \TypeError $mismatch) {
            $faults = $this->faults($body);
            throw $faults === [] ? $mismatch : new FaultsException(422, $faults);
        }
        $this->hasMap ??= self::containsMap($this->type);
        if (\preg_match($this->hasMap ? self::AMBIGUOUS_WITH_MAPS : self::AMBIGUOUS, $body) === 1 && ($faults = $this->faults($body)) !== []) {
            throw new FaultsException(422, $faults);
        }

        return $value;
    }

    /** @param array<class-string, true> $seen classes may contain themselves */
    private static function containsMap(Type $type, array &$seen = []): bool
    {
        if ($type instanceof Optional) {
            return self::containsMap($type->inner, $seen);
        }
        if ($type instanceof Sequence) {
            return self::containsMap($type->item, $seen);
        }
        if (!$type instanceof Instance || isset($seen[$type->class])) {
            return $type instanceof Map;
        }
        $seen[$type->class] = true;
        foreach ($type->shape()->fields() as $field) {
            if (self::containsMap($field->type, $seen)) {
                return true;
            }
        }

        return false;
    }

    /** @return list<Fault> all of them, where decoding stops at the first */
    private function faults(string $body): array
    {
        $data = \json_decode($body);
        if (\json_last_error() === \JSON_ERROR_INVALID_PROPERTY_NAME) {
            return [Fault::inBody('', 'a name begins with U+0000')];
        }

        return \array_map(static fn(array $one): Fault => Fault::inBody($one[0], self::detail($one[1], $one[2])), Mismatches::of($this->type, $data));
    }

    /** Without the names of classes, which are no business of the client. */
    private static function detail(MismatchException $mismatch, Type $type): string
    {
        $type = $type instanceof Optional ? $type->inner : $type;

        return match (true) {
            $type instanceof Enumeration => 'expected one of ' . \implode(', ', \array_map(static fn(\BackedEnum $case): string => (string) \json_encode($case->value), $type->enum::cases())),
            $type instanceof Instance => "expected object, found {$mismatch->found}",
            $type instanceof Sequence => "expected list, found {$mismatch->found}",
            $type instanceof Map => "expected object, found {$mismatch->found}",
            default => $mismatch->problem,
        };
    }
}
