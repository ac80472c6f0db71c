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

    private function __construct(private readonly BodyWriter $writer)
    {
    }

    /** @param \Closure(): mixed $print */
    public static function copy(\Closure $print, BodyWriter $writer): void
    {
        $output = new self($writer);
        // A buffer of one byte: it calls the function for each piece.
        $level = \ob_get_level();
        \ob_start($output->printed(...), 1);
        Realm::hideBuffers(true);
        try {
            $print();
        } finally {
            try {
                Realm::closeBuffers($level, true);
            } finally {
                $output->send();
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
                    $this->send();
                } catch (ClientDisconnectedException $disconnected) {
                    $this->disconnected = $disconnected;
                }
            });
        }

        return '';
    }

    private function send(): void
    {
        if ($this->timer !== null) {
            Scheduler::$current?->unwatch($this->timer);
            $this->timer = null;
        }
        if ($this->pending !== '') {
            $chunk = $this->pending;
            $this->pending = '';
            $this->writer->writeWithoutWaiting($chunk);
        }
    }
}
