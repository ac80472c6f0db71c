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
 * The health of a server and its services (`grpc.health.v1.Health`). Every service is initially serving; the name `""` stands for
 * the whole server.
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

    /** @param string $service the full name, such as `api.Users`; `""` is the whole server */
    public function set(string $service, bool $serving): void
    {
        $this->serving[$service] = $serving;
        $this->changed->wakeAll();
    }

    public function isServing(string $service = ''): bool
    {
        return !$this->stopping && ($this->serving[$service] ?? false);
    }

    /** @internal Reports NOT_SERVING for everything and ends all watches. */
    public function shutDown(): void
    {
        $this->stopping = true;
        $this->changed->wakeAll();
    }

    public function check(HealthCheckRequest $request, Call $call): HealthCheckResponse
    {
        if (!isset($this->serving[$request->service])) {
            $length = \strlen($request->service);
            throw new StatusException(Status::NotFound, $length > 256 ? "unknown service, its name has $length bytes" : "unknown service \"$request->service\"");
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
            // The health may have changed again while the message was sent.
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
