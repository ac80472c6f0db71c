<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\TestCase;

abstract class HttpTestCase extends TestCase
{
    /** @var list<ServerProcess> */
    private array $servers = [];

    protected function serve(string $routes, string $arguments = '', string $address = '127.0.0.1:0', string $app = ''): ServerProcess
    {
        return $this->servers[] = ServerProcess::start($routes, $arguments, $address, $app);
    }

    protected function tearDown(): void
    {
        foreach ($this->servers as $server) {
            $server->stop();
        }
        $this->servers = [];
    }

    protected static function assertStatus(int $status, string $response): void
    {
        self::assertMatchesRegularExpression("~^HTTP/(1\\.[01]|2) $status\\b~", $response);
    }

    protected static function bodyOf(string $response): string
    {
        return explode("\r\n\r\n", $response, 2)[1] ?? '';
    }
}
