<?php

declare(strict_types=1);

namespace Weft\Http;

/** All instances of an {@see ApplicationPool} were in use for as long as a request waits. The response is 503. */
final class ApplicationPoolExhaustedException extends HttpException
{
    /** @param list<string> $holders who held the instances, the longest first; not for the client */
    public function __construct(string $message, public readonly array $holders, ?\Throwable $previous = null)
    {
        parent::__construct(503, $message, ['retry-after' => '1'], $previous);
    }
}
