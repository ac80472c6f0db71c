<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\TestCase;
use Weft\Bench\Chaos\Proxy;
use Weft\Tests\Timing;

require_once __DIR__ . '/../../bench/autoload.php';

final class ProxyTest extends TestCase
{
    /** @var resource */
    private $listener;
    private Proxy $proxy;
    /** @var resource */
    private $client;
    /** @var resource */
    private $server;

    protected function setUp(): void
    {
        $this->listener = stream_socket_server('tcp://127.0.0.1:0');
        $this->proxy = new Proxy((int) substr(strrchr(stream_socket_get_name($this->listener, false), ':'), 1));
        $this->client = stream_socket_client("tcp://127.0.0.1:{$this->proxy->port}", timeout: Timing::DEADLINE);
        $this->server = stream_socket_accept($this->listener, Timing::DEADLINE);
    }

    protected function tearDown(): void
    {
        $this->proxy->stop();
    }

    /** Less, and the proxy instead of the distance would bound a transfer. */
    public function testItHoldsBackAsManyBytesAsALongFastLinkHasInFlight(): void
    {
        $this->proxy->slow(60.0);
        stream_set_blocking($this->client, false);

        $sent = 0;
        $deadline = microtime(true) + Timing::DEADLINE;
        while ($sent < 24 << 20 && microtime(true) < $deadline) {
            [$none, $ready, $nothing] = [null, [$this->client], null];
            stream_select($none, $ready, $nothing, 0, 20_000) === 1 && $sent += (int) fwrite($this->client, str_repeat('x', 1 << 16));
        }

        self::assertGreaterThanOrEqual(24 << 20, $sent);
    }

    public function testBytesArriveInOrderAndNotBeforeTheirTime(): void
    {
        $this->proxy->slow(0.1);
        $bytes = random_bytes(3 << 20);

        $started = microtime(true);
        stream_set_blocking($this->client, false);
        stream_set_timeout($this->server, (int) Timing::DEADLINE);
        for ($sent = 0; $sent < strlen($bytes);) {
            $sent += (int) fwrite($this->client, substr($bytes, $sent, 1 << 16));
        }
        $first = fread($this->server, 1);
        $seconds = microtime(true) - $started;
        $rest = stream_get_contents($this->server, strlen($bytes) - 1);

        self::assertGreaterThanOrEqual(0.1, $seconds);
        self::assertTrue($bytes === $first . $rest);
    }
}
