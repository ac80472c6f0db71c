<?php

declare(strict_types=1);

namespace Weft\Tests\Bench\Bus;

use PHPUnit\Framework\TestCase;
use Weft\Amqp\Connection;
use Weft\Amqp\Message;
use Weft\Amqp\Queue;
use Weft\Bench\Bus\Counters;
use Weft\Bench\Bus\Timeline;
use Weft\Tests\Timing;

require_once __DIR__ . '/../../../bench/autoload.php';

final class TimelineTest extends TestCase
{
    private const MESSAGES = 25;

    public function testItHasWhatTheBrokerCountedSinceItsStart(): void
    {
        $broker = $this->broker();
        $timeline = new Timeline(new Counters("http://$broker"));
        $this->tickUntilSampled($timeline, 0.0);
        $this->tickUntilSampled($timeline, 10.0);
        $timeline->finish(11.0);
        $this->stopBroker();

        self::assertSame(
            ['seconds' => [0.0, 10.0, 11.0], 'published' => [0, 100, 200], 'delivered' => [0, 10, 20], 'acknowledged' => [0, 1, 2]],
            $timeline->toArray(),
        );
    }

    public function testItReadsTheCountersOfRabbitMq(): void
    {
        $queue = 'timeline-' . bin2hex(random_bytes(4));
        $timeline = new Timeline(new Counters((string) getenv('RABBITMQ_PROMETHEUS_URL')));
        $this->tickUntilSampled($timeline, 0.0);
        $broker = Connection::connect((string) getenv('AMQP_URL'));
        $broker->declare(new Queue($queue));
        $broker->publisher()->publishAll(array_fill(0, self::MESSAGES, new Message('x')), routingKey: $queue);
        $consumer = $broker->consume($queue);
        for ($got = 0; $got < self::MESSAGES; $got += count($deliveries)) {
            $deliveries = $consumer->next();
            array_map($consumer->ack(...), $deliveries);
        }
        $consumer->flush();
        // The acknowledgements are on their way; what comes after them on the same channel has an answer.
        $consumer->close();
        $broker->deleteQueue($queue);
        $broker->close();
        $this->tickUntilSampled($timeline, 10.0);

        $samples = $timeline->toArray();
        foreach (['published', 'delivered', 'acknowledged'] as $name) {
            self::assertSame(0, $samples[$name][0]);
            // The counters are those of the whole broker, which may serve others meanwhile.
            self::assertGreaterThanOrEqual(self::MESSAGES, end($samples[$name]), $name);
        }
        self::assertSame(count($samples['published']), count($samples['seconds']));
    }

    public function testALongRunHasNoMoreSamplesThanAShortOne(): void
    {
        $broker = $this->broker();
        $timeline = new Timeline(new Counters("http://$broker"));
        $seconds = 0.0;
        for ($i = 0; $i < 700; ++$i) {
            $seconds = $this->tickUntilSampled($timeline, $seconds) + 1e6;
        }

        $samples = $timeline->toArray();

        self::assertLessThanOrEqual(100, count($samples['seconds']));
        self::assertGreaterThan(40, count($samples['seconds']));
        self::assertSame(0.0, $samples['seconds'][0]);
        $this->stopBroker();
    }

    public function testWithoutABrokerThatAnswersThereIsNone(): void
    {
        $timeline = new Timeline(new Counters('http://127.0.0.1:1'));
        $timeline->tick(0.0);
        $timeline->tick(1.0);
        $timeline->finish(2.0);

        self::assertNull($timeline->toArray());
        self::assertNull((new Timeline(null))->toArray());
    }

    /** Asks again and again, as the runner does, until there is an answer; returns the second of the run it came at. */
    private function tickUntilSampled(Timeline $timeline, float $seconds): float
    {
        $samples = (new \ReflectionProperty($timeline, 'samples'));
        $last = static fn(): array|false => ($all = $samples->getValue($timeline)) === [] ? false : end($all);
        $before = $last();
        $deadline = microtime(true) + Timing::DEADLINE;
        while ($last() === $before) {
            self::assertLessThan($deadline, microtime(true), 'the broker does not answer');
            $timeline->tick($seconds);
            usleep(200);
        }

        return $seconds;
    }

    /** @var resource|null */
    private $server = null;

    /** @return string host and port of something that answers as the plugin does, with higher counters each time */
    private function broker(): string
    {
        $code = <<<'PHP'
            $server = stream_socket_server('tcp://127.0.0.1:0');
            echo stream_socket_get_name($server, false), "\n";
            for ($n = 1; $client = stream_socket_accept($server, 30); ++$n) {
                while (trim((string) fgets($client)) !== '') {
                }
                fwrite($client, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
                foreach (['received' => 100, 'delivered' => 10, 'acknowledged' => 1] as $name => $factor) {
                    fwrite($client, sprintf("rabbitmq_global_messages_%s_total{protocol=\"amqp091\"} %d\n", $name, $n * $factor));
                }
                fclose($client);
            }
            PHP;
        $this->server = proc_open([PHP_BINARY, '-n', '-r', $code], [['file', '/dev/null', 'r'], ['pipe', 'w'], STDERR], $pipes);

        return trim((string) fgets($pipes[1]));
    }

    private function stopBroker(): void
    {
        proc_terminate($this->server);
        proc_close($this->server);
    }
}
