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
            return $this->type->decode($data);
        } catch (MismatchException | \TypeError $mismatch) {
            throw $this->explained($data, $mismatch);
        }
    }

    private function explained(mixed $data, \Throwable $mismatch): \Throwable
    {
        $faults = \array_map(static fn(array $one): Fault => Fault::inBody($one[0], self::detail($one[1], $one[2])), Mismatches::of($this->type, $data));

        return $faults === [] ? $mismatch : new FaultsException(422, $faults);
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
