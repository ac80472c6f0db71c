<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\TestCase;

abstract class HttpTestCase extends TestCase
{
    /** @var list<ServerProcess> */
    private array $servers = [];

    /** @param list<string> $extensions of PHP that the program loads beside Weft's */
    protected function serve(string $routes, string $arguments = '', string $address = '127.0.0.1:0', string $app = '', array $extensions = []): ServerProcess
    {
        return $this->keep(ServerProcess::start($routes, $arguments, $address, $app, $extensions));
    }

    /** Stops it at the end of the test. */
    protected function keep(ServerProcess $server): ServerProcess
    {
        return $this->servers[] = $server;
    }

    protected function tearDown(): void
    {
        foreach ($this->servers as $server) {
            $server->stop();
        }
        $this->servers = [];
    }

    /** What an application that has called `$app->metrics("127.0.0.1:0")` serves. */
    protected static function metrics(ServerProcess $server): string
    {
        self::assertTrue($server->awaitLog('/metrics'));
        preg_match('~http://(\S+)/metrics~', $server->log(), $endpoint);

        return (string) file_get_contents("http://$endpoint[1]/metrics");
    }

    protected static function assertStatus(int $status, string $response): void
    {
        self::assertMatchesRegularExpression("~^HTTP/(1\\.[01]|2) $status\\b~", $response);
    }

    /** The value of a header field, empty where there is none. */
    protected static function field(string $response, string $name): string
    {
        preg_match("/^$name: (.*)\r$/m", explode("\r\n\r\n", $response, 2)[0] . "\r\n", $found);

        return $found[1] ?? '';
    }

    protected static function bodyOf(string $response): string
    {
        return explode("\r\n\r\n", $response, 2)[1] ?? '';
    }
}
