<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Psr\Log\LoggerInterface;
use Weft\Native;
use Weft\Native\HttpServer;
use Weft\Runtime\Internal\Scheduler;

/**
 * Logs the requests and connections that a server refuses before a handler sees them, at most one line per reason in ten seconds.
 *
 * @internal
 */
final class RefusalLog
{
    private ?int $waiting = null;

    public function __construct(private readonly HttpServer $native, private readonly LoggerInterface $logger)
    {
    }

    public function watch(Scheduler $scheduler): void
    {
        $this->waiting = $this->native->refused();
        $scheduler->listenTo($this->waiting, function (int $op) use ($scheduler): void {
            /** @var list<array{string, int, ?string, string}> $refusals */
            $refusals = Native\take($op);
            foreach ($refusals as [$reason, $count, $peer, $detail]) {
                $this->logger->warning('HTTP server refused {count} × {reason}, last from {peer}{detail}', [
                    'reason' => $reason,
                    'count' => $count,
                    'peer' => $peer ?? 'an unknown address',
                    'detail' => $detail === '' ? '' : ": $detail",
                ]);
            }
            $this->watch($scheduler);
        });
    }

    public function end(): void
    {
        if ($this->waiting !== null) {
            Scheduler::$current?->unlisten($this->waiting);
            $this->waiting = null;
        }
    }
}
