<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\WebSocket;
use Weft\Native;
use Weft\Runtime\Internal\Scheduler;

/**
 * Cancels the handlers of WebSockets whose clients have left.
 *
 * A handler that receives or sends learns of the end there. One that waits for something else, such as the next event of a feed, would keep its
 * task and its place among the long-lived requests. The extension announces the end to receivers and senders only, so one timer of the server
 * looks at the WebSockets whose handlers are neither.
 *
 * @internal
 */
final class WebSocketWatch
{
    /** Seconds between two looks. */
    private const INTERVAL = 1.0;

    /** @var array<int, array{WebSocket, float, \Closure(): void}> by object id: the WebSocket, its grace in seconds, what cancels its handler */
    private array $open = [];
    private ?int $timer = null;

    /**
     * @param float $grace {@see \Weft\Http\WebSocketOptions::$grace}
     * @param \Closure(): void $cancel called once, unless `remove()` comes first
     */
    public function add(WebSocket $socket, float $grace, \Closure $cancel): void
    {
        $this->open[\spl_object_id($socket)] = [$socket, $grace, $cancel];
        if ($this->timer === null && Scheduler::$current !== null) {
            $this->wait(Scheduler::$current);
        }
    }

    public function remove(WebSocket $socket): void
    {
        unset($this->open[\spl_object_id($socket)]);
        if ($this->open === [] && $this->timer !== null) {
            Scheduler::$current?->unwatch($this->timer);
            $this->timer = null;
        }
    }

    private function wait(Scheduler $scheduler): void
    {
        $this->timer = Native\sleep(self::INTERVAL);
        $scheduler->watch($this->timer, function (int $op) use ($scheduler): void {
            Native\take($op);
            $this->timer = null;
            foreach ($this->open as $id => [$socket, $grace, $cancel]) {
                if ($socket->isLeft($grace)) {
                    unset($this->open[$id]);
                    $cancel();
                }
            }
            if ($this->open !== []) {
                $this->wait($scheduler);
            }
        });
    }
}
