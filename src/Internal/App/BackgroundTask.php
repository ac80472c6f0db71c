<?php

declare(strict_types=1);

namespace Weft\Internal\App;

use Psr\Log\LoggerInterface;
use Weft\Internal\Generators;
use Weft\Internal\Jitter;
use Weft\RestartPolicy;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Scope;

use function Weft\delay;
use function Weft\scope;

/**
 * A background task of an application, restarted as its policy says.
 *
 * @internal
 */
final class BackgroundTask
{
    private const JITTER = 0.25;

    private bool $isStopping = false;
    private ?Scope $scope = null;

    public function __construct(
        public readonly string $name,
        private readonly \Closure $work,
        private readonly RestartPolicy $restart,
        private readonly LoggerInterface $logger,
    ) {
    }

    /** Cancels the work. An exception is its end from now on, not a failure. */
    public function stop(): void
    {
        $this->isStopping = true;
        $this->scope?->cancel('the application stops');
    }

    /** @throws \Throwable the failure that is not followed by a restart */
    public function run(): void
    {
        // In a scope of its own, so that clean-up after stop() can still be cancelled with the task.
        scope(function (Scope $scope): void {
            $this->scope = $scope;
            $this->repeat();
        });
    }

    private function repeat(): void
    {
        $failures = 0;
        while (!$this->isStopping) {
            $started = \hrtime(true);
            try {
                // The work fails if a task that it has started fails, and not the application.
                Generators::refuseResult(scope(fn(): mixed => ($this->work)()), $this->work, "The background task \"{$this->name}\"");
                $failures = 0;
                if (!$this->restart->afterReturn || self::isCancelled()) {
                    return;
                }
                $pause = $this->restart->delay;
            } catch (\Throwable $thrown) {
                if ($this->isStopping) {
                    $thrown instanceof CancelledException || throw $thrown;

                    return;
                }
                if (self::isCancelled()) {
                    throw $thrown;
                }
                $failures = (\hrtime(true) - $started) / 1e9 > $this->restart->maxDelay ? 1 : $failures + 1;
                $pause = $this->pause($failures, $thrown);
            }
            try {
                delay($pause);
            } catch (CancelledException $cancelled) {
                $this->isStopping || throw $cancelled;
            }
        }
    }

    /** Whether the application has failed: a cancellation is thrown once, so work that is started again would run forever. */
    private static function isCancelled(): bool
    {
        return Scheduler::context()?->cancelled === true;
    }

    private function pause(int $failures, \Throwable $thrown): float
    {
        if (!$this->restart->afterFailure || $failures > ($this->restart->limit ?? \PHP_INT_MAX)) {
            throw $thrown;
        }
        $pause = Jitter::around(\min($this->restart->maxDelay, $this->restart->delay * 2 ** \min($failures - 1, 60)), self::JITTER);
        $this->logger->error('Background task {task} failed and is restarted in {seconds} s: {error}', [
            'task' => $this->name,
            'seconds' => \round($pause, 3),
            'error' => $thrown->getMessage(),
            'exception' => $thrown,
        ]);

        return $pause;
    }
}
