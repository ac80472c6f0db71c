<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal;

use Weft\Native\GrpcClientCall;

/**
 * Cancels a bidirectional call whose responses are discarded before the first read: a generator that was never started runs no
 * `finally`.
 *
 * @internal
 */
final class UnstartedCallGuard
{
    public function __construct(private readonly GrpcClientCall $call, private readonly RequestSender $sender)
    {
    }

    public function __destruct()
    {
        $this->call->cancel();
        $this->sender->cancel('the responses of the call were discarded');
    }
}
