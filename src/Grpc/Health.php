<?php

declare(strict_types=1);

namespace Weft\Grpc;

use Weft\Grpc\Health\HealthCheckRequest;
use Weft\Grpc\Health\HealthCheckResponse;
use Weft\Grpc\Health\HealthCheckResponse\ServingStatus;
use Weft\Grpc\Health\HealthListRequest;
use Weft\Grpc\Health\HealthListResponse;
use Weft\Runtime\Internal\WaitQueue;

/**
 * The health of a server and its services, as `grpc.health.v1.Health` tells it. Every service begins as serving; the name `""` is
 * the server as a whole.
 */
final class Health implements Health\Health
{
    /** @var array<string, bool> */
    private array $serving = ['' => true];
    private bool $stopping = false;
    private readonly WaitQueue $changed;

    /**
     * @internal made by the server
     *
     * @param list<string> $services full names
     */
    public function __construct(array $services)
    {
        $this->serving += \array_fill_keys($services, true);
        $this->changed = new WaitQueue('a change of health');
    }

    /** @param string $service its full name, such as `api.Users`; `""` is the server as a whole */
    public function set(string $service, bool $serving): void
    {
        $this->serving[$service] = $serving;
        $this->changed->wakeAll();
    }

    public function isServing(string $service = ''): bool
    {
        return !$this->stopping && ($this->serving[$service] ?? false);
    }

    /** @internal From now on nothing is serving, and those who watch are told so and left. */
    public function shutDown(): void
    {
        $this->stopping = true;
        $this->changed->wakeAll();
    }

    public function check(HealthCheckRequest $request, Call $call): HealthCheckResponse
    {
        if (!isset($this->serving[$request->service])) {
            throw new StatusException(Status::NotFound, "unknown service \"$request->service\"");
        }

        return new HealthCheckResponse(status: $this->status($request->service));
    }

    public function list(HealthListRequest $request, Call $call): HealthListResponse
    {
        $response = new HealthListResponse();
        foreach (\array_keys($this->serving) as $service) {
            $response->statuses[$service] = new HealthCheckResponse(status: $this->status((string) $service));
        }

        return $response;
    }

    public function watch(HealthCheckRequest $request, Call $call): iterable
    {
        $told = null;
        while (true) {
            $status = $this->status($request->service);
            if ($status !== $told) {
                yield new HealthCheckResponse(status: $told = $status);
            }
            if ($this->stopping) {
                throw new StatusException(Status::Unavailable, 'the server is stopping');
            }
            // While it was being sent the next change may have come already.
            if ($this->status($request->service) === $told && !$this->stopping) {
                $this->changed->wait();
            }
        }
    }

    private function status(string $service): ServingStatus
    {
        return match (true) {
            !isset($this->serving[$service]) => ServingStatus::SERVICE_UNKNOWN,
            $this->isServing($service) => ServingStatus::SERVING,
            default => ServingStatus::NOT_SERVING,
        };
    }
}
