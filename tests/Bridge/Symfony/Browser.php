<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use Weft\Tests\Timing;

/** A client with cookies. It follows no redirects. */
final class Browser
{
    /** @var array<string, string> */
    public array $cookies = [];

    public int $status = 0;

    /** @var array<string, list<string>> by names in small letters */
    public array $headers = [];

    public string $body = '';

    public function __construct(private readonly string $address)
    {
    }

    public function get(string $path): self
    {
        return $this->receive($this->send('GET', $path));
    }

    /** @param array<string, mixed> $fields */
    public function post(string $path, array $fields): self
    {
        return $this->receive($this->send('POST', $path, \http_build_query($fields)));
    }

    /** Logs in by the form. */
    public function logIn(string $user): self
    {
        $token = $this->get('/login')->token('_csrf_token');

        return $this->post('/login', ['_username' => $user, '_password' => 'secret', '_csrf_token' => $token]);
    }

    /** The value of a hidden field of the page. */
    public function token(string $field): string
    {
        return \preg_match('/name="' . \preg_quote($field, '/') . '"[^>]* value="([^"]*)"/', $this->body, $found) === 1 ? $found[1] : '';
    }

    /**
     * Sends a request and does not wait for its answer.
     *
     * @return resource
     */
    public function send(string $method, string $path, string $body = '')
    {
        $socket = \stream_socket_client("tcp://$this->address", $code, $message, Timing::DEADLINE);
        if ($socket === false) {
            throw new \RuntimeException("$this->address: $message");
        }
        \stream_set_timeout($socket, (int) Timing::DEADLINE);
        $cookies = \implode('; ', \array_map(static fn(string $name, string $value): string => "$name=$value", \array_keys($this->cookies), $this->cookies));
        \fwrite($socket, "$method $path HTTP/1.1\r\nHost: $this->address\r\nConnection: close\r\n"
            . ($cookies === '' ? '' : "Cookie: $cookies\r\n")
            . ($method === 'POST' ? "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: " . \strlen($body) . "\r\n" : '')
            . "\r\n$body");

        return $socket;
    }

    /** @param resource $socket */
    public function receive($socket): self
    {
        $answer = (string) \stream_get_contents($socket);
        \fclose($socket);
        [$head, $this->body] = \explode("\r\n\r\n", $answer, 2) + ['', ''];
        $lines = \explode("\r\n", $head);
        $this->status = (int) (\explode(' ', $lines[0])[1] ?? 0);
        /** @var array<string, list<string>> $headers */
        $headers = [];
        foreach (\array_slice($lines, 1) as $line) {
            [$name, $value] = \explode(':', $line, 2);
            $headers[\strtolower($name)][] = \trim($value);
        }
        $this->headers = $headers;
        if (($this->headers['transfer-encoding'] ?? []) === ['chunked']) {
            $this->body = self::unchunked($this->body);
        }
        foreach ($this->headers['set-cookie'] ?? [] as $cookie) {
            [$name, $value] = \explode('=', \explode(';', $cookie)[0], 2);
            $this->cookies[$name] = $value;
        }

        return $this;
    }

    private static function unchunked(string $body): string
    {
        $whole = '';
        while (\preg_match('/^([0-9a-f]+)[^\r]*\r\n/i', $body, $found) === 1 && ($length = (int) \hexdec($found[1])) > 0) {
            $whole .= \substr($body, \strlen($found[0]), $length);
            $body = \substr($body, \strlen($found[0]) + $length + 2);
        }

        return $whole;
    }
}
