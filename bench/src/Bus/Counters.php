<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

/**
 * RabbitMQ's message counters from its Prometheus plugin, which are current; those of the management API lag
 * by seconds. Requests do not wait for the response, so that other measurements are not delayed.
 */
final class Counters
{
    private const NAMES = [
        'published' => 'rabbitmq_global_messages_received_total',
        'delivered' => 'rabbitmq_global_messages_delivered_total',
        'acknowledged' => 'rabbitmq_global_messages_acknowledged_total',
    ];

    /** @var resource|null */
    private $connection = null;
    private string $answer = '';
    private bool $asked = false;

    /** @param string $url of the plugin, such as http://127.0.0.1:15692 */
    public function __construct(private readonly string $url)
    {
    }

    /** Sends a request unless one is pending; false if there is no response to wait for. */
    public function ask(): bool
    {
        if (!$this->asked && $this->connect()) {
            $host = parse_url($this->url, PHP_URL_HOST);
            // Over HTTP/1.1, RabbitMQ 4.3 sends the answer in chunks.
            $this->asked = @fwrite($this->connection, "GET /metrics HTTP/1.0\r\nHost: $host\r\n\r\n") !== false;
        }

        return $this->asked;
    }

    /** @return array{published: int, delivered: int, acknowledged: int}|null null while the answer is not complete */
    public function answer(): ?array
    {
        if (!$this->asked) {
            return null;
        }
        $this->answer .= stream_get_contents($this->connection);
        if (!feof($this->connection)) {
            return null;
        }
        $isWhole = preg_match('{^HTTP/\S+ 200 .*?\r\n\r\n}s', $this->answer) === 1;
        $counts = $isWhole ? array_map($this->sum(...), self::NAMES) : null;
        $this->close();

        return $counts;
    }

    public function close(): void
    {
        $this->connection !== null && fclose($this->connection);
        $this->connection = null;
        $this->asked = false;
        $this->answer = '';
    }

    private function connect(): bool
    {
        if ($this->connection === null) {
            $parts = parse_url($this->url);
            $this->connection = @stream_socket_client("tcp://{$parts['host']}:{$parts['port']}", $code, $message, 1.0) ?: null;
            $this->connection !== null && stream_set_blocking($this->connection, false);
        }

        return $this->connection !== null;
    }

    /** Over all protocols and kinds of queues. */
    private function sum(string $name): int
    {
        preg_match_all("/^$name\\{[^}]*\\} (\\d+)/m", $this->answer, $lines);

        return array_sum(array_map(intval(...), $lines[1]));
    }
}
