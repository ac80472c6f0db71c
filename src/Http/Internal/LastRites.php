<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Psr\Log\LoggerInterface;
use Weft\Http\Request;
use Weft\Native\HttpServer;
use Weft\Runtime\Internal\Arrivals;
use Weft\Runtime\Internal\Coroutine;
use Weft\Runtime\Internal\Scheduler;

/**
 * What becomes of a server's requests when a handler has ended the process, by `exit()` or by a fatal error.
 *
 * @internal
 */
final class LastRites
{
    /** Seconds that requests of other tasks may take after an `exit()`. */
    private const GRACE = 10.0;
    /** Seconds in which answers have to leave. */
    private const FLUSH = 1.0;
    /** Bytes that this may take where memory has run out. */
    private const RESERVE = 16_777_216;
    private const FATAL = \E_ERROR | \E_CORE_ERROR | \E_COMPILE_ERROR | \E_USER_ERROR | \E_RECOVERABLE_ERROR | \E_PARSE;

    public static function of(HttpServer $native, Arrivals $requests, LoggerInterface $logger): void
    {
        $requests = \WeakReference::create($requests);
        \register_shutdown_function(static function () use ($native, $requests, $logger): void {
            $scheduler = Scheduler::$current;
            $left = $requests->get()?->members() ?? [];
            if ($scheduler !== null && $left !== []) {
                (new self($native, $requests->get(), $logger, $scheduler))->give();
            }
        });
    }

    private function __construct(
        private readonly HttpServer $native,
        private readonly Arrivals $requests,
        private readonly LoggerInterface $logger,
        private readonly Scheduler $scheduler,
    ) {
    }

    private function give(): void
    {
        $error = \error_get_last();
        $fatal = $error !== null && ($error['type'] & self::FATAL) !== 0 ? "{$error['message']} at {$error['file']}:{$error['line']}" : null;
        if ($fatal !== null) {
            \ini_set('memory_limit', (string) (\memory_get_usage(true) + self::RESERVE));
        }
        $culprit = $this->culprit();
        $others = $this->requests->members();
        if ($culprit !== null) {
            unset($others[$culprit->args[1]]);
            $this->requests->forget($culprit);
            $this->answer($culprit->args[0], 500);
        }
        $this->logger->critical('{culprit} {deed}: this process ends, {others} other requests are {fate}', [
            'culprit' => $culprit === null ? 'Code outside any request' : $this->requests->nameOf($culprit),
            'deed' => $fatal === null ? 'called exit()' : "failed: $fatal",
            'others' => \count($others),
            'fate' => $fatal === null ? 'finished first' : 'answered 503',
        ]);
        $this->native->stop();
        if ($fatal === null) {
            $this->finishOthers();
        }
        foreach ($this->requests->members() as $task) {
            $this->answer($task->args[0], 503);
        }
        $this->flush();
    }

    /** The request whose task was running, or a task below. */
    private function culprit(): ?Coroutine
    {
        for ($task = $this->scheduler->running; $task !== null; $task = $task->owner()) {
            if ($task->group === $this->requests) {
                return $task;
            }
        }

        return null;
    }

    private function answer(Request $request, int $status): void
    {
        if ($request->isOpen()) {
            $page = $status === 503 ? ErrorPage::unavailable() : ErrorPage::plain($status);
            $request->respond($page->status, $page->headers, $page->body);
        }
    }

    private function finishOthers(): void
    {
        $deadline = \hrtime(true) / 1e9 + self::GRACE;
        $this->scheduler->goOnAfterExit(fn(): bool => $this->requests->members() !== [] && \hrtime(true) / 1e9 < $deadline);
    }

    private function flush(): void
    {
        $deadline = \hrtime(true) / 1e9 + self::FLUSH;
        while ($this->native->connections() > 0 && \hrtime(true) / 1e9 < $deadline) {
            \Weft\Native\poll(0.01);
        }
    }
}
