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
            // Over HTTP/1.0, RabbitMQ 4.3 does not tell where the answer ends.
            $this->asked = @fwrite($this->connection, "GET /metrics HTTP/1.1\r\nHost: $host\r\nConnection: close\r\n\r\n") !== false;
        }

        return $this->asked;
    }

    /** @return array{published: int, delivered: int, acknowledged: int}|null null while the answer is not complete, and where it was cut off */
    public function answer(): ?array
    {
        if (!$this->asked) {
            return null;
        }
        $this->answer .= stream_get_contents($this->connection);
        if (!feof($this->connection)) {
            return null;
        }
        $body = self::body($this->answer);
        $this->close();

        return $body === null ? null : array_map(static fn (string $name): int => self::sum($body, $name), self::NAMES);
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

    /** Null of an answer that was cut off. */
    private static function body(string $answer): ?string
    {
        if (preg_match('{^HTTP/\S+ 200 (.*?\r\n)\r\n(.*)$}s', $answer, $parts) !== 1) {
            return null;
        }
        [, $head, $body] = $parts;
        if (preg_match('{^content-length: *(\d+)}mi', $head, $length) === 1) {
            return strlen($body) === (int) $length[1] ? $body : null;
        }

        return preg_match('{^transfer-encoding: *chunked}mi', $head) === 1 ? self::joinChunks($body) : $body;
    }

    private static function joinChunks(string $chunks): ?string
    {
        $body = '';
        $at = 0;
        while (preg_match('{\G([0-9a-f]+)\r\n}i', $chunks, $line, 0, $at) === 1) {
            $bytes = (int) hexdec($line[1]);
            if ($bytes === 0) {
                return $body;
            }
            $at += strlen($line[0]);
            $body .= substr($chunks, $at, $bytes);
            $at += $bytes + 2;
        }

        return null;
    }

    /** Over all protocols and kinds of queues. */
    private static function sum(string $metrics, string $name): int
    {
        preg_match_all("/^$name\\{[^}]*\\} (\\d+)/m", $metrics, $lines);

        return array_sum(array_map(intval(...), $lines[1]));
    }
}
