<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\HttpException;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Http\WebSocket;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Scope;

use function Weft\scope;

/**
 * A route that speaks WebSocket.
 *
 * @internal
 */
final class WebSocketRoute
{
    /**
     * @param \Closure(Request, WebSocket): mixed $handler
     * @param list<string> $subprotocols
     * @param list<string>|null $origins
     */
    public function __construct(
        private readonly \Closure $handler,
        private readonly array $subprotocols,
        private readonly ?array $origins,
        private readonly int $messageBytes,
        private readonly float $pingInterval,
        private readonly bool $compress,
        private readonly ?string $publicScheme,
    ) {
    }

    /** Returns when the conversation has ended; its answer has been sent by then. */
    public function open(Request $request): Response
    {
        $origin = $request->header('origin');
        if ($origin !== null && !$this->isAllowed($origin, $request)) {
            throw new HttpException(403, 'Pages of this origin may not connect');
        }
        $subprotocol = $this->subprotocol($request->header('sec-websocket-protocol') ?? '');
        $native = $request->acceptWebSocket($subprotocol, $this->messageBytes, $this->pingInterval, $this->compress);
        if ($native !== null) {
            $this->talk($request, new WebSocket($native, $subprotocol));
        }

        return new Response(101);
    }

    private function talk(Request $request, WebSocket $socket): void
    {
        scope(function (Scope $scope) use ($request, $socket): void {
            try {
                ($this->handler)($request, $socket);
                $socket->close();
            } catch (\Throwable $error) {
                $socket->close(...$error instanceof CancelledException ? [1001, 'cancelled'] : [1011, 'the handler failed']);
                throw $error;
            } finally {
                $scope->cancel('its conversation has ended');
            }
        });
    }

    private function isAllowed(string $origin, Request $request): bool
    {
        if ($this->origins !== null) {
            return \in_array('*', $this->origins, true) || \in_array($origin, $this->origins, true);
        }
        $scheme = $this->publicScheme ?? $request->scheme();

        return self::withoutPort($origin) === self::withoutPort("$scheme://{$request->host()}");
    }

    /** An origin as browsers write it: in lower case, without the port that its scheme has by default (RFC 6454 §6.2). */
    private static function withoutPort(string $origin): string
    {
        return (string) \preg_replace('/^(http:\/\/.*):80$|^(https:\/\/.*):443$/D', '$1$2', \strtolower($origin));
    }

    private function subprotocol(string $offered): ?string
    {
        $offered = \array_map(\trim(...), \explode(',', $offered));

        return \array_values(\array_intersect($this->subprotocols, $offered))[0] ?? null;
    }
}
