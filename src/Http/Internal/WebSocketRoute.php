<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\HttpException;
use Weft\Http\Internal\Handlers\Argument;
use Weft\Http\Internal\Handlers\FaultsException;
use Weft\Http\InvalidRequestException;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Http\WebSocket;
use Weft\Http\WebSocketOptions;
use Weft\Internal\Generators;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Scope;

use function Weft\scope;

/**
 * A route that speaks WebSocket.
 *
 * @internal
 */
final class WebSocketRoute
{
    /** @param list<Argument|null> $arguments of the handler; null for the WebSocket */
    public function __construct(
        private readonly \Closure $handler,
        private readonly array $arguments,
        private readonly WebSocketOptions $options,
    ) {
    }

    /** Returns when the WebSocket is closed; the response to the handshake has been sent by then. */
    public function open(Request $request): Response
    {
        $origin = $request->header('origin');
        if ($origin !== null && !$this->isAllowed($origin, $request)) {
            throw new HttpException(403, 'Pages of this origin may not connect');
        }
        $values = $this->values($request);
        $subprotocol = $this->subprotocol($request->header('sec-websocket-protocol') ?? '');
        $native = $request->acceptWebSocket($subprotocol, $this->options->messageBytes, $this->options->pingInterval, $this->options->compress);
        if ($native !== null) {
            $socket = new WebSocket($native, $subprotocol);
            $this->handle($socket, \array_map(static fn(mixed $value, ?Argument $argument): mixed => $argument === null ? $socket : $value, $values, $this->arguments));
        }

        return new Response(101);
    }

    /**
     * Before the handshake, so that a fault becomes a response.
     *
     * @return list<mixed>
     */
    private function values(Request $request): array
    {
        try {
            return \array_map(static fn(?Argument $argument): mixed => $argument?->value($request), $this->arguments);
        } catch (FaultsException $found) {
            throw new InvalidRequestException($found->status, $found->faults);
        }
    }

    /** @param list<mixed> $arguments */
    private function handle(WebSocket $socket, array $arguments): void
    {
        scope(function (Scope $scope) use ($socket, $arguments): void {
            try {
                Generators::refuseResult(($this->handler)(...$arguments), $this->handler, 'The WebSocket handler');
                $socket->close();
            } catch (\Throwable $error) {
                $socket->close(...Scheduler::isCancelledBy($error) ? [1001, 'cancelled'] : [1011, 'the handler failed']);
                throw $error;
            } finally {
                $scope->cancel('its WebSocket is closed');
            }
        });
    }

    private function isAllowed(string $origin, Request $request): bool
    {
        if ($this->options->origins !== null) {
            return \in_array('*', $this->options->origins, true) || \in_array($origin, $this->options->origins, true);
        }

        return self::withoutDefaultPort($origin) === self::withoutDefaultPort("{$request->scheme()}://{$request->host()}");
    }

    /** An origin as browsers write it: in lower case, without the port that its scheme has by default (RFC 6454 §6.2). */
    private static function withoutDefaultPort(string $origin): string
    {
        return (string) \preg_replace('/^(http:\/\/.*):80$|^(https:\/\/.*):443$/D', '$1$2', \strtolower($origin));
    }

    private function subprotocol(string $offered): ?string
    {
        $offered = \array_map(\trim(...), \explode(',', $offered));

        return \array_values(\array_intersect($this->options->subprotocols, $offered))[0] ?? null;
    }
}
