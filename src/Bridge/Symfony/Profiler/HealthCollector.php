<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Profiler;

use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\DataCollector\DataCollector;
use Symfony\Component\HttpKernel\DataCollector\LateDataCollectorInterface;
use Weft\Bridge\Symfony\Internal\Shared;

/** The panel of Symfony's profiler with the pools of this process and the queues that it has used, as they were after the request. */
final class HealthCollector extends DataCollector implements LateDataCollectorInterface
{
    public function __construct()
    {
        $this->reset();
    }

    public function collect(Request $request, Response $response, ?\Throwable $exception = null): void
    {
        $this->data['pools'] = Shared::pools();
    }

    /** After the response: it asks the broker. */
    public function lateCollect(): void
    {
        $this->data['queues'] = Shared::depths();
    }

    public function reset(): void
    {
        $this->data = ['pools' => [], 'queues' => []];
    }

    public function getName(): string
    {
        return 'weft';
    }

    /** @return array<string, array{size: int, in_use: int, idle: int, waiting: int}> connections by pool */
    public function getPools(): array
    {
        return $this->data['pools'];
    }

    /** @return array<string, int|string> messages by queue, or why they are not known */
    public function getQueues(): array
    {
        return $this->data['queues'];
    }
}
