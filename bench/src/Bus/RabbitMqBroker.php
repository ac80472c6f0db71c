<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\BenchmarkException;
use Weft\Bench\HttpAnswer;

/** A virtual host of the benchmark's own, made and emptied over RabbitMQ's management API. */
final class RabbitMqBroker
{
    private const VIRTUAL_HOST = 'weft-bench';

    /**
     * @param string $amqpUrl of any virtual host, with user and password
     * @param string $managementUrl of the management API, with a user that may create virtual hosts
     */
    public function __construct(private readonly string $amqpUrl, private readonly string $managementUrl)
    {
    }

    public function url(): string
    {
        return preg_replace('#^(amqps?://[^/?]+)[^?]*#', '$1/' . self::VIRTUAL_HOST, $this->amqpUrl);
    }

    public function version(): string
    {
        return $this->call('GET', 'overview')['rabbitmq_version'];
    }

    /** Leaves the virtual host without any queue or exchange, whatever a contender had declared. */
    public function reset(): void
    {
        $this->delete();
        $user = rawurlencode(rawurldecode((string) parse_url($this->amqpUrl, PHP_URL_USER)));
        $this->call('PUT', 'vhosts/' . self::VIRTUAL_HOST, new \stdClass());
        $this->call('PUT', 'permissions/' . self::VIRTUAL_HOST . "/$user", ['configure' => '.*', 'write' => '.*', 'read' => '.*']);
    }

    public function delete(): void
    {
        $this->call('DELETE', 'vhosts/' . self::VIRTUAL_HOST, ignoreNotFound: true);
    }

    /** A durable classic queue. */
    public function declare(string $queue): void
    {
        $this->call('PUT', 'queues/' . self::VIRTUAL_HOST . '/' . rawurlencode($queue), ['durable' => true, 'arguments' => ['x-queue-type' => 'classic']]);
    }

    /** Messages in all queues. Asked by getting one and giving it back: the API's counters lag by seconds. */
    public function queued(): int
    {
        $queues = array_column($this->call('GET', 'queues/' . self::VIRTUAL_HOST . '?columns=name'), 'name');

        return array_sum(array_map($this->queuedIn(...), $queues));
    }

    private function queuedIn(string $queue): int
    {
        $messages = $this->call('POST', 'queues/' . self::VIRTUAL_HOST . '/' . rawurlencode($queue) . '/get', [
            'count' => 1,
            'ackmode' => 'ack_requeue_true',
            'encoding' => 'base64',
        ]);

        return $messages === [] ? 0 : 1 + $messages[0]['message_count'];
    }

    private function call(string $method, string $path, object|array|null $body = null, bool $ignoreNotFound = false): array
    {
        $parts = parse_url($this->managementUrl);
        $credentials = rawurldecode($parts['user'] ?? '') . ':' . rawurldecode($parts['pass'] ?? '');
        $address = "{$parts['scheme']}://{$parts['host']}:{$parts['port']}/api/$path";
        $answer = @HttpAnswer::of($address, [
            'method' => $method,
            'header' => ['Content-Type: application/json', 'Authorization: Basic ' . base64_encode($credentials)],
            'content' => $body === null ? '' : json_encode($body, JSON_THROW_ON_ERROR),
            'timeout' => 60,
        ]);
        if ($answer->body === false || $answer->status >= 400 && !($answer->status === 404 && $ignoreNotFound)) {
            throw new BenchmarkException("RabbitMQ's management API answers $method $path with status {$answer->status}: {$answer->body}");
        }

        return json_decode($answer->body, true) ?? [];
    }
}
