<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Internal;

use Illuminate\Contracts\Container\Container;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Foundation\Application;
use Weft\Runtime\Internal\Scheduler;

/**
 * The exception handler while a request or job is cancelled. The cancellation is not an error of the application: it is not reported, and
 * `render()` throws it in place of making a page of it. Other exceptions go to the handler of the application.
 *
 * The pipelines of middleware, the kernel and `report()` ask the container for the handler when they have caught an exception, so it is
 * replaced there and then: any implementation of the contract has it, and without a cancellation an application and its packages find the
 * handler that they have bound, with all of its methods.
 *
 * @internal
 */
final class CancellationHandler implements ExceptionHandler
{
    private function __construct(private readonly ExceptionHandler $handler)
    {
    }

    /** Wraps the handler of the application and its clones. */
    public static function install(Application $application): void
    {
        $isReplacing = false;
        $application->beforeResolving(ExceptionHandler::class, static function (string $name, array $parameters, Container $container) use (&$isReplacing): void {
            // It is called for implementations of the contract too, and for the handler that is replaced.
            if ($name !== ExceptionHandler::class || $isReplacing || !Scheduler::isEnding()) {
                return;
            }
            $isReplacing = true;
            try {
                $handler = $container->make(ExceptionHandler::class);
                $handler instanceof self || $container->instance(ExceptionHandler::class, new self($handler));
            } finally {
                $isReplacing = false;
            }
        });
    }

    public function report(\Throwable $e): void
    {
        Scheduler::cancellationIn($e) === null && $this->handler->report($e);
    }

    public function shouldReport(\Throwable $e): bool
    {
        return Scheduler::cancellationIn($e) === null && $this->handler->shouldReport($e);
    }

    public function render($request, \Throwable $e): mixed
    {
        $cancellation = Scheduler::cancellationIn($e);
        if ($cancellation !== null) {
            throw $cancellation;
        }

        return $this->handler->render($request, $e);
    }

    public function renderForConsole($output, \Throwable $e): void
    {
        $this->handler->renderForConsole($output, $e);
    }

    /**
     * Calls a method that the application's handler has beside the contract.
     *
     * @param list<mixed> $arguments
     */
    public function __call(string $name, array $arguments): mixed
    {
        return $this->handler->{$name}(...$arguments);
    }
}
