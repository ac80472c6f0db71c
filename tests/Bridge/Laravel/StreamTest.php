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

    public function testAnExportWaitsForASlowClientAndTheMemoryOfTheWorkerStaysFlat(): void
    {
        self::assertSame(131_072, \substr_count($this->bodyOf($this->open('/export?pieces=2')), 'X'));
        $before = (int) $this->bodyOf($this->open('/peak'));
        $client = $this->open('/export?pieces=1024');
        self::readUntil($client, 'X');

        // The client reads nothing while others are answered.
        foreach ([1, 2, 3] as $number) {
            self::assertSame(65_536, \substr_count($this->bodyOf($this->open('/export?pieces=1')), 'X'));
            self::assertSame("printed $number, returned", $this->bodyOf($this->open("/prints?n=$number")));
        }
        $rest = 0;
        for ($turn = 0; ($text = (string) \fread($client, 262_144)) !== ''; $turn++) {
            $rest += \substr_count($text, 'X');
            $turn % 64 === 0 && \usleep(10_000);
        }
        self::assertGreaterThan(67_108_864 - 65_536, $rest);
        self::assertLessThan(16_384, (int) $this->bodyOf($this->open('/peak')) - $before, 'KiB beyond the start');
        self::assertSame('', $this->server->other);
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
