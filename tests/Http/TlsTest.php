<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use Weft\Tests\Timing;

final class TlsTest extends HttpTestCase
{
    private const ROUTES = '$routes->get("/", static fn(Request $r) => Response::text($r->scheme() . $r->protocol() . strlen($r->clientCertificate() ?? "")))->get("/reload", static function () use ($app) { try { $app->reloadCertificates(); return Response::text("reloaded"); } catch (TlsException $e) { return Response::text($e->getMessage(), 500); } })->get("/slow", static function () { delay(0.5); return Response::text("slow"); });';

    private Certificates $certificates;

    protected function setUp(): void
    {
        $this->certificates = new Certificates();
        $this->certificates->issue('a', 'a.test');
        $this->certificates->issue('b', '*.b.test');
    }

    protected function tearDown(): void
    {
        parent::tearDown();
        $this->certificates->remove();
    }

    public function testHttp2AndHttp1AreChosenByAlpn(): void
    {
        $server = $this->secured($this->certificates->php('a'));

        self::assertSame('https20', $this->fetch($server, 'a.test', '/'));
        self::assertSame('https1.10', $this->fetch($server, 'a.test', '/', '--http1.1'));
    }

    public function testAClientGetsTheCertificateOfTheNameItAsksFor(): void
    {
        $server = $this->secured("[{$this->certificates->php('a')}, {$this->certificates->php('b')}]");

        self::assertSame('https20', $this->fetch($server, 'a.test', '/'));
        self::assertSame('https20', $this->fetch($server, 'www.b.test', '/'));
        self::assertStringContainsString('SSL', $this->fetch($server, 'other.test', '/'));
    }

    public function testAClientCertificateIsAskedForAndShown(): void
    {
        $this->certificates->issue('client', 'client.test');
        $directory = $this->certificates->directory;
        $server = $this->secured("{$this->certificates->php('a')}, clientCaFile: '$directory/ca.crt'");

        self::assertMatchesRegularExpression('/^https2[1-9]\d\d$/', $this->fetch($server, 'a.test', '/', '--cert', "$directory/client.crt", '--key', "$directory/client.key"));
        // Whether curl reads the alert or finds the connection closed is a race of its own.
        self::assertMatchesRegularExpression('/^curl: .*(certificate required|errno|SSL|reset by peer|Broken pipe)/', $this->fetch($server, 'a.test', '/'));
    }

    public function testCertificatesAreReloadedWithoutDroppingAConnection(): void
    {
        $server = $this->secured($this->certificates->php('a'));
        $before = $this->subjectShownBy($server);
        $open = $this->connected($server);
        fwrite($open, "GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n");
        rename("{$this->certificates->directory}/b.crt", "{$this->certificates->directory}/a.crt");
        rename("{$this->certificates->directory}/b.key", "{$this->certificates->directory}/a.key");

        self::assertSame('reloaded', $this->fetch($server, 'a.test', '/reload', '--insecure'));

        self::assertSame(['a', 'b'], [$before, $this->subjectShownBy($server)]);
        self::assertStringEndsWith('slow', (string) fread($open, 65536));
    }

    public function testAReloadThatFailsKeepsTheOldCertificate(): void
    {
        $server = $this->secured($this->certificates->php('a'));
        file_put_contents("{$this->certificates->directory}/a.key", 'no key');

        self::assertStringContainsString("{$this->certificates->directory}/a.key", $this->fetch($server, 'a.test', '/reload'));
        self::assertSame('https20', $this->fetch($server, 'a.test', '/'));
    }

    public function testAClientThatSpeaksNoTlsIsDisconnected(): void
    {
        $server = $this->secured($this->certificates->php('a'));

        self::assertStringStartsNotWith('HTTP', $server->exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        self::assertSame('https20', $this->fetch($server, 'a.test', '/'));
    }

    private function secured(string $tls): ServerProcess
    {
        return $this->serve(self::ROUTES, ", tls: new Tls($tls)");
    }

    private function fetch(ServerProcess $server, string $host, string $path, string ...$arguments): string
    {
        [, $port] = explode(':', $server->address);
        $command = ['curl', '-sS', '--max-time', (string) Timing::DEADLINE, '--resolve', "$host:$port:127.0.0.1", '--cacert', "{$this->certificates->directory}/ca.crt", ...$arguments, "https://$host:$port$path"];
        $process = proc_open($command, [1 => ['pipe', 'w'], 2 => ['pipe', 'w']], $pipes);
        $output = stream_get_contents($pipes[1]) . stream_get_contents($pipes[2]);
        proc_close($process);

        return $output;
    }

    /** @return resource */
    private function connected(ServerProcess $server)
    {
        $context = stream_context_create(['ssl' => ['verify_peer' => false, 'verify_peer_name' => false, 'capture_peer_cert' => true]]);
        $socket = stream_socket_client("tls://$server->address", $code, $message, Timing::DEADLINE, STREAM_CLIENT_CONNECT, $context);

        return $socket === false ? throw new \RuntimeException($message) : $socket;
    }

    private function subjectShownBy(ServerProcess $server): string
    {
        $options = stream_context_get_options($this->connected($server));

        return openssl_x509_parse($options['ssl']['peer_certificate'])['subject']['CN'];
    }
}
