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
                $this->log($reason, $count, $peer, $detail);
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

    /** Without free descriptors PHP cannot load the classes of a logger: that failure must not end the server. */
    private function log(string $reason, int $count, ?string $peer, string $detail): void
    {
        $values = ['reason' => $reason, 'count' => $count, 'peer' => $peer ?? 'an unknown address', 'detail' => $detail === '' ? '' : ": $detail"];
        try {
            $this->logger->warning('HTTP server refused {count} × {reason}, last from {peer}{detail}', $values);
        } catch (\Throwable) {
            \error_log("HTTP server refused $count × $reason, last from {$values['peer']}{$values['detail']}");
        }
    }
}
