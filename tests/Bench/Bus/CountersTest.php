<?php

declare(strict_types=1);

namespace Weft\Tests\Bench\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bench\Bus\Counters;
use Weft\Tests\Timing;

require_once __DIR__ . '/../../../bench/autoload.php';

/** RabbitMQ's counters as the benchmark of the bus reads them. */
final class CountersTest extends TestCase
{
    private const METRICS = "rabbitmq_global_messages_received_total{protocol=\"amqp091\"} 300\n"
        . "rabbitmq_global_messages_delivered_total{protocol=\"amqp091\",queue_type=\"rabbit_classic_queue\"} 20\n"
        . "rabbitmq_global_messages_acknowledged_total{protocol=\"amqp091\",queue_type=\"rabbit_classic_queue\"} 3\n"
        . "rabbitmq_global_messages_acknowledged_total{protocol=\"amqp091\",queue_type=\"rabbit_quorum_queue\"} 4\n";

    /** @return iterable<string, array{string}> */
    public static function answers(): iterable
    {
        $metrics = self::METRICS;
        yield 'with its length' => ["HTTP/1.1 200 OK\r\nContent-Length: " . strlen($metrics) . "\r\n\r\n$metrics"];
        $chunks = implode('', array_map(static fn (string $chunk): string => dechex(strlen($chunk)) . "\r\n$chunk\r\n", str_split($metrics, 100)));
        yield 'in chunks' => ["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{$chunks}0\r\n\r\n"];
    }

    /** @dataProvider answers */
    #[DataProvider('answers')]
    public function testCountersOfAllKindsOfQueuesAreAdded(string $answer): void
    {
        self::assertSame(['published' => 300, 'delivered' => 20, 'acknowledged' => 7], $this->read($answer));
    }

    /** @dataProvider answers */
    #[DataProvider('answers')]
    public function testAnAnswerThatIsCutOffHasNoCounters(string $answer): void
    {
        self::assertNull($this->read(substr($answer, 0, -20)));
    }

    public function testAnErrorHasNoCounters(): void
    {
        self::assertNull($this->read("HTTP/1.1 503 Service Unavailable\r\n\r\n" . self::METRICS));
    }

    /** @return array{published: int, delivered: int, acknowledged: int}|null of a broker that answers like this */
    private function read(string $answer): ?array
    {
        $server = stream_socket_server('tcp://127.0.0.1:0');
        self::assertIsResource($server);
        $counters = new Counters('http://' . stream_socket_get_name($server, false));
        self::assertTrue($counters->ask());
        $client = stream_socket_accept($server, Timing::DEADLINE);
        self::assertIsResource($client);
        while (trim((string) fgets($client)) !== '') {
        }
        fwrite($client, $answer);
        fclose($client);
        $deadline = microtime(true) + Timing::DEADLINE;
        do {
            $counts = $counters->answer();
            $isOpen = (new \ReflectionProperty($counters, 'connection'))->getValue($counters) !== null;
        } while ($isOpen && microtime(true) < $deadline);
        self::assertFalse($isOpen, 'the answer was not read to its end');

        return $counts;
    }
}
