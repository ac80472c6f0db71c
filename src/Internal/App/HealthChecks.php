<?php

declare(strict_types=1);

namespace Weft\Internal\App;

use Psr\Log\LoggerInterface;
use Weft\Internal\Generators;
use Weft\Internal\Number;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Task;

use function Weft\async;
use function Weft\delay;
use function Weft\timeout;

/**
 * The health checks of an application. A check fails until it has passed once.
 *
 * @internal
 */
final class HealthChecks
{
    /** @var array<string, array{\Closure(): mixed, float, float}> check, interval and timeout in seconds, by name */
    private array $checks = [];

    /** @var array<string, bool> those that fail, by name; whether it was logged */
    private array $failing = [];

    /** @param \Closure(): void $changed called whenever a check begins to fail or to pass */
    public function __construct(
        private readonly LoggerInterface $logger,
        private readonly \Closure $changed,
    ) {
    }

    public function add(string $name, \Closure $check, float $every, float $timeout): void
    {
        if (isset($this->checks[$name])) {
            throw new \Error("The application has a health check \"{$name}\" already");
        }
        if (!($every > 0.0 && $every < \INF && $timeout > 0.0 && $timeout < \INF)) {
            throw new \ValueError("The interval and the timeout of the health check \"{$name}\" must be above 0 seconds and finite, got " . Number::text($every) . ' and ' . Number::text($timeout));
        }
        Generators::refuse($check, "The health check \"{$name}\"");
        $this->checks[$name] = [$check, $every, $timeout];
        $this->failing[$name] = false;
    }

    /** @return list<string> */
    public function failing(): array
    {
        return \array_map(\strval(...), \array_keys($this->failing));
    }

    /**
     * Starts a task for each check in the current scope.
     *
     * @return list<Task>
     */
    public function start(): array
    {
        return \array_map(fn(int|string $name): Task => async($this->repeat(...), (string) $name)->named("health check {$name}"), \array_keys($this->checks));
    }

    private function repeat(string $name): void
    {
        [$check, $every, $timeout] = $this->checks[$name];
        while (true) {
            $this->record($name, self::problem($check, $timeout));
            delay($every);
        }
    }

    /** @return string|\Throwable|null why it fails; null when it passes */
    private static function problem(\Closure $check, float $timeout): string|\Throwable|null
    {
        try {
            $returned = timeout($timeout, $check);
            Generators::refuseResult($returned, $check, 'The health check');

            return $returned === false ? 'it returned false' : null;
        } catch (\Throwable $thrown) {
            return Scheduler::isCancelledBy($thrown) ? throw $thrown : $thrown;
        }
    }

    private function record(string $name, string|\Throwable|null $problem): void
    {
        $failed = isset($this->failing[$name]);
        if ($problem === null && $failed) {
            $this->failing[$name] && $this->logger->notice('Health check {check} passes again', ['check' => $name]);
            unset($this->failing[$name]);
            ($this->changed)();
        }
        if ($problem !== null && !($this->failing[$name] ?? false)) {
            $error = $problem instanceof \Throwable ? $problem->getMessage() : $problem;
            $this->logger->warning('Health check {check} fails: {error}', ['check' => $name, 'error' => $error] + ($problem instanceof \Throwable ? ['exception' => $problem] : []));
            $this->failing[$name] = true;
            ($this->changed)();
        }
    }
}
