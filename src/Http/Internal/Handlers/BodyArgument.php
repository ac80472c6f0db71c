<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Http\Fault;
use Weft\Http\HttpException;
use Weft\Http\Internal\JsonBody;
use Weft\Http\Request;
use Weft\Internal\Codec\Mismatches;
use Weft\Internal\Codec\MismatchException;
use Weft\Internal\Codec\Type;

/**
 * The body, decoded from JSON.
 *
 * @internal
 */
final class BodyArgument implements Argument
{
    private const JSON = '~^application/(?:[\w.+-]+\+)?json\s*(?:;|$)~Di';

    /** Decoded to arrays, which is fast, an empty list and an empty object are the same. */
    private const EMPTY = '~\[\s*+\]|\{\s*+\}~';
    /** Without such a key an array that is a list was a list in JSON. */
    private const KEY_OF_A_LIST = '~"(?:0|\\\\u0030)"\s*+:~';

    private ?Type $lenient = null;

    /**
     * @param Type $type refuses lists for objects and maps
     * @param \Closure(): Type $makeLenient makes the type that takes them, which few bodies need
     * @param (\Closure(): mixed)|null $default makes the value of a request without a body; null if the body is required
     */
    public function __construct(
        public readonly Type $type,
        private readonly \Closure $makeLenient,
        private readonly ?\Closure $default,
    ) {
    }

    public function isRequired(): bool
    {
        return $this->default === null;
    }

    public function value(Request $request): mixed
    {
        if ($this->default !== null && $request->body() === '') {
            return ($this->default)();
        }
        $contentType = $request->header('content-type') ?? '';
        if ($contentType !== 'application/json' && \preg_match(self::JSON, $contentType) !== 1) {
            // Also keeps forms of other sites out, whose requests browsers send without asking.
            throw new HttpException(415, 'The body must be JSON, with the content type application/json', ['accept-post' => 'application/json']);
        }

        return $this->decode(JsonBody::checked($request->body()));
    }

    /** @throws FaultsException */
    private function decode(string $body): mixed
    {
        $data = \json_decode($body, true);
        if ($data === null && $body !== 'null') {
            $detail = $body === '' ? 'the body is empty; expected JSON' : 'the body is not JSON: ' . \json_last_error_msg();
            \json_last_error() === \JSON_ERROR_NONE || throw new FaultsException(400, [Fault::inBody('', $detail)]);
        }
        $hasKeyOfAList = \preg_match(self::KEY_OF_A_LIST, $body) === 1;
        $type = $hasKeyOfAList ? $this->lenient ??= ($this->makeLenient)() : $this->type;
        try {
            $value = $type->decode($data);
        } catch (MismatchException | \TypeError $mismatch) {
            $faults = $this->faults($body);
            throw $faults === [] ? $mismatch : new FaultsException(422, $faults);
        }
        // Not kept beside what is decoded next.
        unset($data);
        if (($hasKeyOfAList || \preg_match(self::EMPTY, $body) === 1) && ($faults = $this->faults($body)) !== []) {
            throw new FaultsException(422, $faults);
        }

        return $value;
    }

    /** @return list<Fault> all of them, where decoding stops at the first */
    private function faults(string $body): array
    {
        $data = \json_decode($body);
        if (\json_last_error() === \JSON_ERROR_INVALID_PROPERTY_NAME) {
            return [Fault::inBody('', 'a name begins with U+0000')];
        }

        return \array_map(static fn(array $one): Fault => Fault::inBody($one[0], FaultDetail::of($one[1], $one[2])), Mismatches::of($this->type, $data));
    }
}
