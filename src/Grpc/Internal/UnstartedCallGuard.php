<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal;

use Weft\Native\GrpcClientCall;
use Weft\Runtime\Task;

/**
 * Ends a call that streams both ways where its answers are thrown away before anybody has begun to read them: a generator that was
 * never started runs no `finally`.
 *
 * @internal
 */
final class UnstartedCallGuard
{
    public function __construct(private readonly GrpcClientCall $call, private readonly Task $sender)
    {
    }

    public function __destruct()
    {
        $this->call->cancel();
        $this->sender->cancel('nobody reads the answers of its call');
    }
}
