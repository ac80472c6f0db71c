<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use Weft\Http\TrustedProxies;
use Weft\Tests\Execution;
use Weft\Tests\Timing;

/** Requests that proxies pass on. */
final class ProxyTest extends HttpTestCase
{
    private const NGINX = '/usr/sbin/nginx';
    private const TELL = '$routes->get("/", static fn(Request $request) => [$request->clientAddress(), $request->clientPort() === null, $request->scheme(), $request->host()]);';
    private const SPOOFED = ['-H', 'X-Forwarded-For: 1.1.1.1, 203.0.113.9', '-H', 'X-Forwarded-Proto: https', '-H', 'X-Forwarded-Host: example.org', '-H', 'Forwarded: for=2.2.2.2;proto=https;host=evil.example'];

    public function testFieldsOfNobodyAreBelievedByDefault(): void
    {
        $server = $this->serve(self::TELL);

        self::assertSame(['127.0.0.1', false, 'http', $server->address], self::told($server->get('/', ...self::SPOOFED)));
    }

    public function testTheFieldsOfATrustedProxyDescribeItsClient(): void
    {
        $server = $this->behind('["127.0.0.0/8"]');

        foreach (['--http1.1', '--http2-prior-knowledge'] as $protocol) {
            self::assertSame(['203.0.113.9', true, 'https', 'example.org'], self::told($server->get('/', $protocol, ...self::SPOOFED)));
        }
        self::assertSame(['127.0.0.1', false, 'http', $server->address], self::told($server->get('/')));
    }

    public function testANetworkOfMappedAddressesIsOneOfIpv4(): void
    {
        $server = $this->behind('["::ffff:127.0.0.0/104"]');

        self::assertSame(['203.0.113.9', true, 'https', 'example.org'], self::told($server->get('/', ...self::SPOOFED)));
    }

    public function testAnotherAddressIsNotBelieved(): void
    {
        $server = $this->behind('["10.0.0.0/8", "::1"]');

        self::assertSame(['127.0.0.1', false, 'http', $server->address], self::told($server->get('/', ...self::SPOOFED)));
    }

    public function testForwardedIsReadIfItIsWhatTheProxiesSet(): void
    {
        $server = $this->behind('["127.0.0.1", "198.51.100.7"], fields: Weft\Http\ForwardedFields::Forwarded');

        $response = $server->get('/', '-H', 'X-Forwarded-For: 1.1.1.1', '-H', 'Forwarded: for=2.2.2.2;host=evil.example', '-H', 'Forwarded: for="[2001:db8::1]:4711";proto=https;host=example.org, for=198.51.100.7');

        self::assertSame(['2001:db8::1', false, 'https', 'example.org'], self::told($response));
    }

    public function testAProxyOnAUnixSocketIsTrustedAsSuch(): void
    {
        $directory = new Directory();
        $server = $this->serve(self::TELL, ', proxies: new Weft\Http\TrustedProxies(["unix"])', "unix:$directory->path/socket");

        self::assertSame(['203.0.113.9', true, 'https', 'example.org'], self::told($server->get('/', ...self::SPOOFED)));
        $server->stop();
        $directory->remove();
    }

    public function testApplicationsSeeTheClientOfAProxyInTheirServerParameters(): void
    {
        $server = $this->behind('["127.0.0.1"]', '$routes->fallback(new Weft\Bridge\Symfony\SymfonyHandler(static fn($request) => new Symfony\Component\HttpFoundation\JsonResponse([$request->getClientIp(), $request->getUri(), $request->isSecure()])));', 'require_once "/usr/share/php/Symfony/Component/HttpKernel/autoload.php";');

        self::assertSame(['203.0.113.9', 'https://example.org/a', true], json_decode(self::bodyOf($server->get('/a', ...self::SPOOFED)), true));
    }

    public function testTheProxyProtocolNamesTheClientInBothVersions(): void
    {
        $server = $this->behind('["127.0.0.1"], fields: Weft\Http\ForwardedFields::None, proxyProtocol: true');
        $get = "GET / HTTP/1.1\r\nhost: example.org\r\nx-forwarded-for: 1.1.1.1\r\nconnection: close\r\n\r\n";
        $addresses = inet_pton('203.0.113.9') . inet_pton('127.0.0.1') . pack('nn', 4711, 443);

        self::assertSame(['203.0.113.9', false, 'http', 'example.org'], self::told($server->exchange("PROXY TCP4 203.0.113.9 127.0.0.1 4711 80\r\n$get")));
        self::assertSame(['2001:db8::1', false, 'http', 'example.org'], self::told($server->exchange("PROXY TCP6 2001:db8::1 ::1 4711 80\r\n$get")));
        self::assertSame(['203.0.113.9', false, 'http', 'example.org'], self::told($server->exchange(self::binary("\x21\x11", $addresses) . $get)));
        self::assertSame(['203.0.113.9', false, 'https', 'example.org'], self::told($server->exchange(self::binary("\x21\x11", "$addresses\x20\x00\x05\x01\x00\x00\x00\x00") . $get)));
        foreach (["PROXY UNKNOWN\r\n", self::binary("\x20\x00", '')] as $health) {
            self::assertSame(['127.0.0.1', false, 'http', 'example.org'], self::told($server->exchange($health . $get)));
        }
    }

    public function testAHeaderThatArrivesByteByByteIsRead(): void
    {
        $server = $this->behind('["127.0.0.1"], proxyProtocol: true');
        $socket = $server->connect();
        foreach (str_split("PROXY TCP4 203.0.113.9 127.0.0.1 4711 80\r\nGET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n") as $byte) {
            fwrite($socket, $byte);
            usleep(100);
        }

        self::assertSame(['203.0.113.9', false, 'http', 'a'], self::told(ServerProcess::readAll($socket)));
    }

    public function testAProxyWithoutAHeaderOrWithAMalformedOneIsDisconnected(): void
    {
        $server = $this->behind('["127.0.0.1"], proxyProtocol: true');
        $get = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

        foreach ([$get, "PROXY TCP4 203.0.113.9\r\n$get", self::binary("\x21\x11", 'short') . $get, 'PROXY ' . str_repeat('x', 200)] as $bytes) {
            self::assertSame('', $server->exchange($bytes));
        }
        self::assertTrue($server->awaitLog('PROXY protocol'));
        self::assertStatus(200, $server->exchange("PROXY UNKNOWN\r\nGET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"));
    }

    public function testAClientThatIsNoProxyNeedsNoHeaderAndCanSendNone(): void
    {
        $server = $this->behind('["10.0.0.1"], proxyProtocol: true');

        self::assertSame(['127.0.0.1', false, 'http', $server->address], self::told($server->get('/')));
        self::assertStatus(400, $server->exchange("PROXY TCP4 203.0.113.9 127.0.0.1 4711 80\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n"));
    }

    public function testTheProxyProtocolComesBeforeTls(): void
    {
        $certificates = new Certificates();
        $certificates->issue('a', 'a.test');
        $server = $this->behind('["127.0.0.1"], proxyProtocol: true', tls: ", tls: new Tls({$certificates->php('a')})");
        $socket = $server->connect();
        fwrite($socket, "PROXY TCP4 203.0.113.9 127.0.0.1 4711 443\r\n");
        stream_context_set_option($socket, 'ssl', 'verify_peer', false);
        stream_context_set_option($socket, 'ssl', 'verify_peer_name', false);
        self::assertTrue(stream_socket_enable_crypto($socket, true, STREAM_CRYPTO_METHOD_TLS_CLIENT));
        fwrite($socket, "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");

        self::assertSame(['203.0.113.9', false, 'https', 'a'], self::told(ServerProcess::readAll($socket)));
        $certificates->remove();
    }

    public function testAProxyThatProxyProtocolNamesIsBelievedAsWell(): void
    {
        $server = $this->behind('["127.0.0.1", "198.51.100.0/24"], proxyProtocol: true');

        $response = $server->exchange("PROXY TCP4 198.51.100.3 127.0.0.1 4711 80\r\nGET / HTTP/1.1\r\nhost: a\r\nx-forwarded-for: 203.0.113.9\r\nconnection: close\r\n\r\n");

        self::assertSame(['203.0.113.9', true, 'http', 'a'], self::told($response));
    }

    public function testConnectionsOfAProxyHaveNoClientShare(): void
    {
        $server = $this->behind('["127.0.0.1"]', arguments: ', limits: new Limits(connections: 4, clientShare: 0.25)');

        $sockets = array_map(static fn() => $server->connect(), range(1, 3));
        foreach ($sockets as $socket) {
            fwrite($socket, "GET / HTTP/1.1\r\nhost: a\r\n\r\n");
            self::assertStringContainsString('200 OK', ServerProcess::readUntil($socket, ']'));
        }
    }

    public function testAnAddressThatIsNoneIsRefused(): void
    {
        foreach (['10.0.0.0/33', 'proxy', '10.0.0.1/', 'fd00::/129', '', '10.0.0.0/+8', '10.0.0', '::ffff:10.0.0.0/8'] as $address) {
            try {
                new TrustedProxies([$address]);
                self::fail("$address was taken");
            } catch (\ValueError $error) {
                self::assertStringContainsString(json_encode($address), $error->getMessage());
            }
        }
    }

    public function testNginxAsTheGuideConfiguresItLetsClientsClaimNeitherHostNorPort(): void
    {
        is_file(self::NGINX) || self::markTestSkipped('nginx is not installed');
        $server = $this->behind('["127.0.0.1"]', self::TELL . str_replace('"/"', '"/chat"', self::TELL) . '$routes->websocket("/chat/room", static fn(WebSocket $socket) => null);');
        preg_match('/title="nginx\.conf"\n(.*?)^```$/ms', (string) file_get_contents(__DIR__ . '/../../docs/guides/behind-nginx.md'), $guide);
        $free = stream_socket_server('tcp://127.0.0.1:0');
        $address = (string) stream_socket_get_name($free, false);
        fclose($free);
        $directory = new Directory();
        $directory->write('nginx.conf', str_replace(['127.0.0.1:8080', '127.0.0.1:8443'], [$server->address, $address], $guide[1]));
        mkdir("$directory->path/temp");
        $nginx = proc_open([self::NGINX, '-p', $directory->path, '-c', 'nginx.conf', '-g', 'daemon off;'], [2 => ['file', "$directory->path/log", 'w']], $pipes);
        try {
            Timing::until(static fn(): bool => @stream_socket_client("tcp://$address") !== false, 'nginx listens');
            $ask = static fn(string $path, string ...$fields): string => Execution::of(['curl', '-sSi', '--max-time', '60', ...array_merge([], ...array_map(static fn(string $field): array => ['-H', $field], $fields)), "http://$address$path"])->output;
            $spoofed = ['X-Forwarded-Host: evil.example', 'X-Forwarded-Port: 4444', 'Forwarded: host=evil.example'];

            foreach (['/', '/chat'] as $path) {
                self::assertSame(['127.0.0.1', true, 'http', $address], self::told($ask($path, ...$spoofed)), $path);
                self::assertSame('shop.example.org', self::told($ask($path, 'Host: shop.example.org', ...$spoofed))[3], $path);
            }
            $handshake = ['Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='];
            self::assertStatus(101, $ask('/chat/room', "Origin: http://$address", ...$handshake));
            self::assertStatus(403, $ask('/chat/room', 'Origin: http://evil.example', ...$spoofed, ...$handshake));
        } finally {
            proc_terminate($nginx);
            proc_close($nginx);
            $directory->remove();
        }
    }

    private function behind(string $proxies, string $routes = self::TELL, string $before = '', string $tls = '', string $arguments = ''): ServerProcess
    {
        return $this->serve($before . $routes, "$arguments$tls, proxies: new Weft\\Http\\TrustedProxies($proxies)");
    }

    /** A header of version 2. */
    private static function binary(string $kind, string $rest): string
    {
        return "\r\n\r\n\x00\r\nQUIT\n$kind" . pack('n', \strlen($rest)) . $rest;
    }

    /** @return list<mixed> */
    private static function told(string $response): array
    {
        self::assertStatus(200, $response);

        return json_decode(self::bodyOf($response), true, flags: JSON_THROW_ON_ERROR);
    }
}
