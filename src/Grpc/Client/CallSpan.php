<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

use Weft\Grpc\Status;
use Weft\Runtime\Trace;

/** A completed call of a client, for a tracing backend; see {@see TracedChannel}. */
final class CallSpan
{
    /**
     * @param Trace $trace the span of the call
     * @param Trace|null $parent the span in which the call was made; null if the call began the trace
     * @param string $method the path, such as `/api.Users/Get`
     * @param float $start the Unix time of the call, in seconds
     * @param float $duration seconds until the status; for streamed responses until their end
     * @param Status|null $status of the call; null if the caller ended it early, by an exception or by leaving the loop
     */
    public function __construct(
        public readonly Trace $trace,
        public readonly ?Trace $parent,
        public readonly string $method,
        public readonly float $start,
        public readonly float $duration,
        public readonly ?Status $status,
    ) {
    }

    /**
     * The call as OpenTelemetry's semantic conventions name it.
     *
     * @return array<string, string|int>
     */
    public function telemetry(): array
    {
        [$service, $method] = \explode('/', \substr($this->method, 1), 2) + ['', ''];

        return ['rpc.system' => 'grpc', 'rpc.service' => $service, 'rpc.method' => $method]
            + ($this->status === null ? [] : ['rpc.grpc.status_code' => $this->status->value]);
    }
}
