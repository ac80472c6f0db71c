<?php

declare(strict_types=1);

namespace Weft\Http\Internal\State;

use Psr\Log\LoggerInterface;
use Weft\Http\Internal\ApplicationInstance;
use Weft\Native;

/**
 * Notices what requests leave behind in static properties and services.
 *
 * With `WEFT_STATE_CHECK=1` each request is compared with the one before it in its instance, and what it has changed is logged; with the name of a
 * file it is written there, for `weft state:check`. Otherwise one request in a thousand is compared, and changes are counted, where somebody
 * asks for the metrics.
 *
 * @internal
 */
final class StateWatch
{
    /** Set it to 1 for development. */
    public const VARIABLE = 'WEFT_STATE_CHECK';

    private const SAMPLED = 1_000;

    private readonly string $mode;

    /** @var \WeakMap<ApplicationInstance<object>, StateSnapshot> after its last request */
    private \WeakMap $snapshots;

    /** @var \WeakMap<ApplicationInstance<object>, array<string, true>> requests that it has handled before: the first one fills caches */
    private \WeakMap $known;

    /** @var array<string, true> what was logged */
    private array $reported = [];

    public function __construct(private readonly string $pool, private readonly LoggerInterface $logger)
    {
        $this->mode = (string) \getenv(self::VARIABLE);
        $this->snapshots = new \WeakMap();
        $this->known = new \WeakMap();
    }

    /**
     * After a request and the reset of its instance.
     *
     * @param ApplicationInstance<object> $instance
     * @param string $request `GET /orders`
     */
    public function after(ApplicationInstance $instance, string $request): void
    {
        if ($this->mode === '' || $this->mode === '0') {
            $this->sample($instance);

            return;
        }
        $changes = $this->changes($instance);
        $isKnown = isset($this->known[$instance][$request]);
        $this->known[$instance] = ($this->known[$instance] ?? []) + [$request => true];
        if ($isKnown) {
            $this->report($changes, $request);
        }
    }

    /** @param ApplicationInstance<object> $instance */
    private function sample(ApplicationInstance $instance): void
    {
        $turn = $instance->requests % self::SAMPLED;
        if ($turn > 1 || $turn === $instance->requests || !Native\measured()) {
            return;
        }
        $changes = $this->changes($instance);
        if ($turn === 1) {
            unset($this->snapshots[$instance]);
            Native\addToCounter('weft_application_state_changes_total', 'Static properties and properties of services that sampled requests have changed.', ['pool' => $this->pool], \count($changes));
        }
    }

    /**
     * @param ApplicationInstance<object> $instance
     *
     * @return array<string, LeftBehind> since the snapshot before
     */
    private function changes(ApplicationInstance $instance): array
    {
        $before = $this->snapshots[$instance] ?? null;
        $this->snapshots[$instance] = $after = $instance->run(static fn(object $application): StateSnapshot => new StateSnapshot($application));

        return $before === null ? [] : $after->since($before);
    }

    /** @param array<string, LeftBehind> $changes */
    private function report(array $changes, string $request): void
    {
        foreach ($changes as $name => $change) {
            if (isset($this->reported["$request $name"])) {
                continue;
            }
            $this->reported["$request $name"] = true;
            if ($this->mode === '1') {
                $this->logger->warning('{request} left behind {change}', ['request' => $request, 'change' => (string) $change]);
            } else {
                \file_put_contents($this->mode, \json_encode(['request' => $request, 'name' => $name, 'kind' => $change->kind, 'before' => $change->before], \JSON_THROW_ON_ERROR | \JSON_INVALID_UTF8_SUBSTITUTE) . "\n", \FILE_APPEND);
            }
        }
    }
}
