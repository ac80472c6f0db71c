<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\BodyWriter;
use Weft\Http\ClientDisconnectedException;
use Weft\Native;
use Weft\Native\Realm;
use Weft\Runtime\Internal\Scheduler;

/**
 * The output of code as the chunks of a body. A chunk is sent when it is large enough, and before that once the task waits: nothing leaves while
 * PHP computes, and small pieces without a wait between them become one chunk.
 *
 * Printing waits while the client is behind, as `echo` does under PHP-FPM. Where PHP cannot suspend the task, such as in a destructor before PHP 8.4 or in a
 * Fiber of the application, what is printed is queued, and the next output that can wait does.
 *
 * @internal
 */
final class StreamedOutput
{
    /** Bytes of a chunk that does not wait for more. */
    private const CHUNK = 4_096;

    private string $pending = '';

    /** The operation after which what is pending is sent. */
    private ?int $timer = null;

    /** Set when the client had gone while the task waited: printing more fails with it. */
    private ?ClientDisconnectedException $disconnected = null;

    /** False once the code has failed, was cancelled or has called exit(): what is left does not wait for the client. */
    private bool $mayWait = true;

    private function __construct(private readonly BodyWriter $writer)
    {
    }

    /** @param \Closure(): mixed $print */
    public static function copy(\Closure $print, BodyWriter $writer): void
    {
        $output = new self($writer);
        $level = \ob_get_level();
        Native\receiveOutput($output->printed(...));
        Realm::hideBuffers(true);
        $hasEnded = false;
        try {
            $print();
            Realm::closeBuffers($level, true);
            $output->end();
            $hasEnded = true;
        } finally {
            if (!$hasEnded) {
                $output->mayWait = false;
                try {
                    Realm::closeBuffers($level, true);
                } finally {
                    $output->end();
                }
            }
        }
    }

    private function printed(string $text): string
    {
        if ($this->disconnected !== null && $text !== '') {
            throw $this->disconnected;
        }
        $this->pending .= $text;
        if (\strlen($this->pending) >= self::CHUNK) {
            $this->send();
        } elseif ($this->pending !== '' && $this->timer === null && Scheduler::$current !== null) {
            $this->timer = Native\sleep(0.0);
            Scheduler::$current->watch($this->timer, function (int $op): void {
                Native\take($op);
                $this->timer = null;
                try {
                    $this->queue();
                } catch (ClientDisconnectedException $disconnected) {
                    $this->disconnected = $disconnected;
                }
            });
        }

        return '';
    }

    private function send(): void
    {
        $this->stopTimer();
        if (!$this->mayWait || !Scheduler::canYield() || !Native\maySuspend()) {
            $this->queue();

            return;
        }
        $chunk = $this->pending;
        $this->pending = '';
        $this->writer->write($chunk);
    }

    /** Nothing follows: what is left is on its way without the application, which need not wait until the client has read it. */
    private function end(): void
    {
        $this->stopTimer();
        $this->queue();
    }

    private function stopTimer(): void
    {
        if ($this->timer !== null) {
            Scheduler::$current?->unwatch($this->timer);
            $this->timer = null;
        }
    }

    private function queue(): void
    {
        if ($this->pending !== '') {
            $chunk = $this->pending;
            $this->pending = '';
            $op = $this->writer->begin($chunk);
            $op === 0 || Native\cancel($op);
        }
    }
}
