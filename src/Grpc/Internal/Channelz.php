<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal;

use Weft\Grpc\Call;
use Weft\Grpc\Channelz\V1;
use Weft\Grpc\Channelz\V1\Address;
use Weft\Grpc\Channelz\V1\Address\TcpIpAddress;
use Weft\Grpc\Channelz\V1\Address\UdsAddress;
use Weft\Grpc\Channelz\V1\GetChannelRequest;
use Weft\Grpc\Channelz\V1\GetChannelResponse;
use Weft\Grpc\Channelz\V1\GetServerRequest;
use Weft\Grpc\Channelz\V1\GetServerResponse;
use Weft\Grpc\Channelz\V1\GetServerSocketsRequest;
use Weft\Grpc\Channelz\V1\GetServerSocketsResponse;
use Weft\Grpc\Channelz\V1\GetServersRequest;
use Weft\Grpc\Channelz\V1\GetServersResponse;
use Weft\Grpc\Channelz\V1\GetSocketRequest;
use Weft\Grpc\Channelz\V1\GetSocketResponse;
use Weft\Grpc\Channelz\V1\GetSubchannelRequest;
use Weft\Grpc\Channelz\V1\GetSubchannelResponse;
use Weft\Grpc\Channelz\V1\GetTopChannelsRequest;
use Weft\Grpc\Channelz\V1\GetTopChannelsResponse;
use Weft\Grpc\Channelz\V1\Security;
use Weft\Grpc\Channelz\V1\Security\Tls;
use Weft\Grpc\Channelz\V1\ServerData;
use Weft\Grpc\Channelz\V1\ServerRef;
use Weft\Grpc\Channelz\V1\Socket;
use Weft\Grpc\Channelz\V1\SocketData;
use Weft\Grpc\Channelz\V1\SocketRef;
use Weft\Grpc\Status;
use Weft\Grpc\StatusException;
use Weft\Http;

/**
 * `grpc.channelz.v1` of one server: its connections and their calls. A server has no channels.
 *
 * @internal
 */
final class Channelz implements V1\Channelz
{
    private const SERVER = 1;
    private const MAX_RESULTS = 100;

    /**
     * @param \Closure(): array{int, int, int, ?float} $callStats calls started, succeeded, failed, and when the last was started
     * @param \Closure(): list<Http\Server> $carriers whose connections carry the calls
     */
    public function __construct(private readonly \Closure $callStats, private readonly \Closure $carriers)
    {
    }

    public function getTopChannels(GetTopChannelsRequest $request, Call $call): GetTopChannelsResponse
    {
        return new GetTopChannelsResponse(end: true);
    }

    public function getServers(GetServersRequest $request, Call $call): GetServersResponse
    {
        return new GetServersResponse($request->startServerId <= self::SERVER ? [$this->server()] : [], true);
    }

    public function getServer(GetServerRequest $request, Call $call): GetServerResponse
    {
        self::mustBeServer($request->serverId);

        return new GetServerResponse($this->server());
    }

    public function getServerSockets(GetServerSocketsRequest $request, Call $call): GetServerSocketsResponse
    {
        self::mustBeServer($request->serverId);
        $max = $request->maxResults > 0 ? $request->maxResults : self::MAX_RESULTS;
        $refs = [];
        foreach ($this->connections() as $id => [$address]) {
            if ($id >= $request->startSocketId) {
                $refs[$id] = new SocketRef($id, $address ?? 'unix');
            }
        }
        \ksort($refs);

        return new GetServerSocketsResponse(\array_values(\array_slice($refs, 0, $max)), \count($refs) <= $max);
    }

    public function getChannel(GetChannelRequest $request, Call $call): GetChannelResponse
    {
        throw new StatusException(Status::NotFound, "there is no channel $request->channelId");
    }

    public function getSubchannel(GetSubchannelRequest $request, Call $call): GetSubchannelResponse
    {
        throw new StatusException(Status::NotFound, "there is no subchannel $request->subchannelId");
    }

    public function getSocket(GetSocketRequest $request, Call $call): GetSocketResponse
    {
        $listening = $this->listening()[$request->socketId] ?? null;
        if ($listening !== null) {
            return new GetSocketResponse(new Socket(new SocketRef($request->socketId, $listening), local: self::address($listening)));
        }
        [$address, $secure, $started, $succeeded, $failed, $last] = $this->connections()[$request->socketId]
            ?? throw new StatusException(Status::NotFound, "there is no socket $request->socketId");

        return new GetSocketResponse(new Socket(
            new SocketRef($request->socketId, $address ?? 'unix'),
            new SocketData($started, $succeeded, $failed, lastRemoteStreamCreatedTimestamp: self::time($last)),
            remote: $address === null ? null : self::address($address),
            security: $secure ? new Security(tls: new Tls()) : null,
        ));
    }

    private function server(): V1\Server
    {
        [$started, $succeeded, $failed, $last] = ($this->callStats)();
        $listening = $this->listening();

        return new V1\Server(
            new ServerRef(self::SERVER, \implode(', ', $listening)),
            new ServerData(callsStarted: $started, callsSucceeded: $succeeded, callsFailed: $failed, lastCallStartedTimestamp: self::time($last)),
            \array_map(static fn(int $id, string $address): SocketRef => new SocketRef($id, $address), \array_keys($listening), $listening),
        );
    }

    /** @return array<int, string> addresses by id, from 1: the ids of connections are greater than 16 million */
    private function listening(): array
    {
        $addresses = \array_merge([], ...\array_map(static fn(Http\Server $server): array => $server->addresses(), ($this->carriers)()));

        return $addresses === [] ? [] : \array_combine(\range(1, \count($addresses)), $addresses);
    }

    /** @return array<int, array{?string, bool, int, int, int, ?float}> by id */
    private function connections(): array
    {
        $connections = [];
        $carriers = ($this->carriers)();
        foreach ($carriers as $number => $server) {
            foreach ($server->peers() as $id => $peer) {
                $connections[$id * \count($carriers) + $number] = $peer;
            }
        }

        return $connections;
    }

    /** @param string $address `127.0.0.1:80`, `[::1]:80` or `unix:/path` */
    private static function address(string $address): Address
    {
        if (\str_starts_with($address, 'unix:')) {
            return new Address(udsAddress: new UdsAddress(\substr($address, 5)));
        }
        $colon = (int) \strrpos($address, ':');

        return new Address(new TcpIpAddress((string) \inet_pton(\trim(\substr($address, 0, $colon), '[]')), (int) \substr($address, $colon + 1)));
    }

    private static function time(?float $seconds): ?\DateTimeImmutable
    {
        return $seconds === null ? null : (\DateTimeImmutable::createFromFormat('U.u', \sprintf('%.6F', $seconds)) ?: null);
    }

    private static function mustBeServer(int $id): void
    {
        if ($id !== self::SERVER) {
            throw new StatusException(Status::NotFound, "there is no server $id");
        }
    }
}
