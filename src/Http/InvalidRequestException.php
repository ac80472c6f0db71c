<?php

declare(strict_types=1);

namespace Weft\Http;

/**
 * The values of a request do not match the parameters of its handler, or violate their constraints. It becomes problem details
 * (RFC 9457) whose `errors` lists every fault: 400 if the request cannot be read (malformed JSON, a query parameter or header field that is
 * missing or of another type), 422 if it can, but its body does not match its class or a constraint is violated.
 */
final class InvalidRequestException extends HttpException
{
    /** @param non-empty-list<Fault> $faults */
    public function __construct(int $status, public readonly array $faults, ?\Throwable $previous = null)
    {
        $first = (string) $faults[0];
        $more = \count($faults) - 1;
        parent::__construct($status, 'The request is invalid: ' . $first . ($more === 0 ? '' : " and $more more"), [], $previous);
    }

    public function problem(): Problem
    {
        $count = \count($this->faults);

        return new Problem($this->status, $count === 1 ? 'One value of the request is invalid.' : "$count values of the request are invalid.", extensions: ['errors' => $this->faults]);
    }
}
