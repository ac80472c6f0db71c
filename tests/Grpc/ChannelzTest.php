<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use Weft\Bench\Load\IdleConnections;

require_once __DIR__ . '/../../bench/autoload.php';

/** What tools can ask of a server while it runs, by grpcurl, which knows the service by reflection alone. */
final class ChannelzTest extends GrpcTestCase
{
    private GrpcProcess $server;

    protected function setUp(): void
    {
        $this->server = $this->serve('"list" => static fn() => throw new StatusException(Status::NotFound, "none")', ', new ServerOptions(channelz: true, reflection: true)');
    }

    public function testAServerTellsHowManyCallsItHasHad(): void
    {
        $from = time();
        $this->server->post(self::GET, self::USER_228);
        $this->server->post(self::LIST, self::EMPTY_MESSAGE);

        ['server' => [$server], 'end' => $end] = $this->ask('GetServers');

        self::assertTrue($end);
        self::assertSame(['serverId' => '1', 'name' => $this->server->address], $server['ref']);
        // The question itself is a call, and the one that reflection answers.
        self::assertSame(['1', '1'], [$server['data']['callsSucceeded'], $server['data']['callsFailed']]);
        self::assertGreaterThanOrEqual(3, (int) $server['data']['callsStarted']);
        $last = strtotime($server['data']['lastCallStartedTimestamp']);
        self::assertTrue($last >= $from && $last <= time(), "$last since $from");
        self::assertSame($server, $this->withoutCalls($this->ask('GetServer', '{"serverId": 1}')['server'], $server));
    }

    public function testItsSocketsAreItsConnections(): void
    {
        $port = (int) explode(':', $this->server->address)[1];
        $idle = IdleConnections::openGrpc($port, self::GET, 3);

        $page = $this->ask('GetServerSockets', '{"serverId": 1, "maxResults": 2}');
        $rest = $this->ask('GetServerSockets', json_encode(['serverId' => 1, 'startSocketId' => (int) end($page['socketRef'])['socketId'] + 1]));
        $socket = $this->ask('GetSocket', json_encode(['socketId' => $page['socketRef'][0]['socketId']]))['socket'];
        $idle->close();

        self::assertCount(2, $page['socketRef']);
        self::assertFalse($page['end'] ?? false);
        self::assertTrue($rest['end']);
        // The third, and that of grpcurl.
        self::assertCount(2, $rest['socketRef']);
        self::assertSame(['1', '1'], [$socket['data']['streamsStarted'], $socket['data']['streamsSucceeded']]);
        self::assertSame(base64_encode("\x7f\0\0\1"), $socket['remote']['tcpipAddress']['ipAddress']);
        self::assertSame($page['socketRef'][0]['name'], '127.0.0.1:' . $socket['remote']['tcpipAddress']['port']);
    }

    public function testTheSocketItListensOnHasItsAddress(): void
    {
        $socket = $this->ask('GetSocket', '{"socketId": 1}')['socket'];

        self::assertSame($this->server->address, '127.0.0.1:' . $socket['local']['tcpipAddress']['port']);
    }

    public function testAnUnknownIdIsNotFound(): void
    {
        foreach (['GetServer' => '{"serverId": 2}', 'GetSocket' => '{"socketId": 999}', 'GetChannel' => '{"channelId": 1}', 'GetSubchannel' => '{}', 'GetServerSockets' => '{}'] as $method => $data) {
            [$exit, $output] = Tool::run('grpcurl', ['-plaintext', '-d', $data, $this->server->address, "grpc.channelz.v1.Channelz/$method"]);
            self::assertSame(64 + 5, $exit, "$method: $output");
        }
        self::assertSame(['end' => true], $this->ask('GetTopChannels'));
    }

    /** @return array<string, mixed> */
    private function ask(string $method, string $data = '{}'): array
    {
        [$exit, $output] = Tool::run('grpcurl', ['-plaintext', '-d', $data, $this->server->address, "grpc.channelz.v1.Channelz/$method"]);
        self::assertSame(0, $exit, $output);

        return json_decode($output, true);
    }

    /**
     * The same but for what has been asked meanwhile.
     *
     * @param array<string, mixed> $server
     * @param array<string, mixed> $before
     *
     * @return array<string, mixed>
     */
    private function withoutCalls(array $server, array $before): array
    {
        return array_replace($server, ['data' => $before['data']]);
    }
}
