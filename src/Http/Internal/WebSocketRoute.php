<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\ClientDisconnectedException;
use Weft\Http\HttpException;
use Weft\Http\Internal\Handlers\Argument;
use Weft\Http\Internal\Handlers\HandlerPlan;
use Weft\Http\Internal\Handlers\WebSocketArgument;
use Weft\Http\InvalidRouteError;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Http\WebSocket;
use Weft\Http\WebSocketOptions;
use Weft\Internal\Generators;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Scope;
use Weft\UsageError;
use Weft\Validation\Validator;

use function Weft\scope;

/**
 * A route that speaks WebSocket.
 *
 * @internal
 */
final class WebSocketRoute
{
    private readonly ?Validator $validator;

    /**
     * @param Validator|null $validator of the router
     *
     * @throws InvalidRouteError the handler has #[Validate], but no validator is available
     */
    public function __construct(private readonly HandlerPlan $plan, private readonly WebSocketOptions $options, ?Validator $validator)
    {
        $this->validator = $plan->validator($validator);
    }

    /** Returns when the WebSocket is closed; the response to the handshake has been sent by then. */
    public function open(Request $request): Response
    {
        $origin = $request->header('origin');
        if ($origin !== null && !$this->isAllowed($origin, $request)) {
            throw new HttpException(403, 'Pages of this origin may not connect');
        }
        // Before the handshake, so that a fault becomes a response.
        $values = $this->plan->values($request, $this->validator);
        $subprotocol = $this->subprotocol($request->header('sec-websocket-protocol') ?? '');
        $native = $request->acceptWebSocket($subprotocol, $this->options->messageBytes, $this->options->pingInterval, $this->options->compress);
        if ($native !== null) {
            $socket = new WebSocket($native, $subprotocol);
            $valueOf = static fn(mixed $value, Argument $argument): mixed => $argument instanceof WebSocketArgument ? $socket : $value;
            $arguments = \array_map($valueOf, $values, $this->plan->arguments);
            try {
                $this->handle($socket, $arguments, $request->webSocketWatch);
            } catch (HttpException $error) {
                // It stands for a response, which middleware and the server would make of it.
                $thrown = $error::class . " ($error->status: {$error->getMessage()})";
                $reason = 'but the handshake was answered before: call WebSocket::close() with a code';
                throw new UsageError("A WebSocket handler threw $thrown, $reason", previous: $error);
            }
        }

        return new Response(101);
    }

    /**
     * @param list<mixed> $arguments
     * @param WebSocketWatch|null $watch null for a server that cancels no handler whose client has left
     */
    private function handle(WebSocket $socket, array $arguments, ?WebSocketWatch $watch): void
    {
        $isOver = false;
        try {
            scope(function (Scope $scope) use ($socket, $arguments, $watch, &$isOver): void {
                $isLeft = false;
                $watch?->add($socket, $this->options->grace, static function () use ($scope, &$isLeft): void {
                    $isLeft = true;
                    $scope->cancel('its WebSocket is closed');
                });
                try {
                    Generators::refuseResult(($this->plan->handler)(...$arguments), $this->plan->handler, 'The WebSocket handler');
                    $isOver = true;
                    $socket->close();
                } catch (\Throwable $error) {
                    $isOver = $socket->closeCode() !== null;
                    $isCancelled = Scheduler::isCancelledBy($error);
                    $socket->close(...$isCancelled ? [1001, 'cancelled'] : [1011, 'the handler failed']);
                    // For the middleware this WebSocket has closed like any other.
                    if (!$isCancelled || !$isLeft) {
                        throw $error;
                    }
                } finally {
                    $watch?->remove($socket);
                    $scope->cancel('its WebSocket is closed');
                }
            });
        } catch (ClientDisconnectedException $disconnected) {
            // Of the handler or one of its tasks, which sent to a client that had left: an ordinary end.
            if (!$isOver) {
                throw $disconnected;
            }
        }
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
