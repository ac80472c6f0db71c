<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

/** A virtual host of its own for a test, so that nobody else's messages reach its queues. */
final class VirtualHost
{
    private function __construct(
        private readonly string $name,
        private readonly string $management,
    ) {
    }

    public static function create(string $management): self
    {
        $host = new self('test-' . \bin2hex(\random_bytes(4)), $management);
        $host->request('PUT', "vhosts/{$host->name}");
        $host->permit();

        return $host;
    }

    /** @param string $configure a pattern of the names that the user may declare */
    public function permit(string $configure = '.*'): void
    {
        $user = (string) \parse_url($this->management, \PHP_URL_USER);
        $this->request('PUT', "permissions/{$this->name}/{$user}", (string) \json_encode(['configure' => $configure, 'write' => '.*', 'read' => '.*']));
    }

    public function in(string $dsn): string
    {
        return \preg_replace('~/[^/]*$~', "/{$this->name}", $dsn);
    }

    public function delete(): void
    {
        $this->request('DELETE', "vhosts/{$this->name}");
    }

    private function request(string $method, string $path, string $body = ''): void
    {
        $url = \parse_url($this->management);
        $context = \stream_context_create(['http' => [
            'method' => $method,
            'header' => ['Content-Type: application/json', 'Authorization: Basic ' . \base64_encode("{$url['user']}:{$url['pass']}")],
            'content' => $body,
            'timeout' => 60.0,
        ]]);
        \file_get_contents("http://{$url['host']}:{$url['port']}/api/{$path}", false, $context);
    }
}
