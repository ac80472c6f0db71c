<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use PHPUnit\Framework\TestCase;
use Weft\Tests\Timing;

/** Streamed responses of a Laravel application, and what it prints beside them. */
final class StreamTest extends TestCase
{
    use RequiresLaravel;
    use ServesState;

    protected function setUp(): void
    {
        $this->requireLaravel();
        $this->serveState();
    }

    public function testServerSentEventsArriveOneByOneThoughTheApplicationClosesAllBuffers(): void
    {
        $stream = $this->open('/events');

        // The next event is made when the one before it has arrived.
        foreach ([1, 2, 3] as $number) {
            self::assertStringContainsString("data: $number\n\n", self::readUntil($stream, "data: $number\n\n"), $this->server->other);
            \touch("$this->directory/event-$number");
        }
        self::assertStringContainsString('end', self::readUntil($stream, 'end'));
    }

    public function testWhatIsPrintedBesideTheResponseStaysWithItsRequest(): void
    {
        $first = $this->open('/prints?n=1');
        self::assertSame('printed 2, returned', $this->bodyOf($this->open('/prints?n=2')));
        self::assertSame('printed 1, returned', $this->bodyOf($first));
    }

    public function testWhatDdDumpsIsHtmlInTheResponse(): void
    {
        self::assertMatchesRegularExpression('/<pre class=sf-dump.*dumped.*17/s', $this->bodyOf($this->open('/dd?n=17')), $this->server->other);
        self::assertSame('', $this->server->other);
    }

    /** @return resource */
    private function open(string $path)
    {
        $socket = \stream_socket_client("tcp://$this->address", $code, $message, Timing::DEADLINE) ?: throw new \RuntimeException($message);
        \stream_set_timeout($socket, (int) Timing::DEADLINE);
        \fwrite($socket, "GET $path HTTP/1.1\r\nHost: $this->address\r\nConnection: close\r\n\r\n");

        return $socket;
    }

    /** @param resource $socket */
    private function bodyOf($socket): string
    {
        return \explode("\r\n\r\n", (string) \stream_get_contents($socket), 2)[1] ?? '';
    }

    /** @param resource $socket */
    private static function readUntil($socket, string $end): string
    {
        $read = '';
        while (!\str_contains($read, $end) && ($piece = (string) \fread($socket, 8192)) !== '') {
            $read .= $piece;
        }

        return $read;
    }
}
