<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use Weft\Tests\Execution;
use Weft\Tests\Program;
use Weft\Tests\Timing;

/** A program with an HTTP server. */
final class ServerProcess extends Program
{
    /**
     * @param string $routes PHP code that adds to `$routes`, a Router
     * @param string $arguments of `App::http()` after the address
     * @param list<string> $extensions of PHP that the program loads beside Weft's, in this order
     */
    public static function start(string $routes, string $arguments = '', string $address = '127.0.0.1:0', string $app = '', array $extensions = []): self
    {
        $program = (string) tempnam(sys_get_temp_dir(), 'weft');
        file_put_contents($program, self::program($routes, $arguments, $address, $app));

        return self::launch([...array_merge([], ...array_map(static fn(string $name): array => ['-d', "extension=$name"], $extensions)), $program], $program);
    }

    private static function program(string $routes, string $arguments, string $address, string $app): string
    {
        $autoload = var_export(\dirname(__DIR__, 2) . '/autoload.php', true);
        $gate = self::GATE;

        return <<<PHP
            <?php
            require $autoload;
            use Weft\App;
            use Weft\Http\{BadRequestException, BodyLimits, BodyWriter, Certificate, Compression, Cookie, EventWriter, FormLimits, HeaderLimits, HttpException, Keepalive, Limits, LongLivedLimits, NotFoundException, Request, Response, Router, ServerSentEvent, StaticOptions, Tls, TlsException, WebSocket, WebSocketOptions};
            use function Weft\{async, delay, tasks};
            $gate
            \$app = new App($app);
            \$routes = \$app->http('$address'$arguments);
            $routes
            \$app->run(static function (array \$addresses): void { echo \$addresses[0], "\n"; });
            echo "ended\n";
            PHP;
    }

    /** Bytes on a connection of their own, as they are; what comes back until the server closes it. */
    public function exchange(string $bytes): string
    {
        $socket = $this->connect();
        @fwrite($socket, $bytes);

        return self::readAll($socket);
    }

    /** The same on a server that closes idle connections soon: on a busy machine it may do so before the bytes are sent. */
    public function exchangeBeforeIdle(string $bytes): string
    {
        for ($tries = 0, $answer = ''; $answer === '' && $tries < 6; $tries++) {
            $answer = $this->exchange($bytes);
        }

        return $answer;
    }

    /** @param resource $socket */
    public static function readAll($socket): string
    {
        stream_set_timeout($socket, (int) Timing::DEADLINE);
        $text = '';
        while (!feof($socket)) {
            $chunk = @fread($socket, 65536);
            if ($chunk === '' && stream_get_meta_data($socket)['timed_out']) {
                throw new \RuntimeException("The server neither sends more nor closes the connection after: $text");
            }
            if ($chunk === false) {
                break;
            }
            $text .= $chunk;
        }

        return $text;
    }

    /** @param resource $stream */
    public static function readUntil($stream, string $text): string
    {
        for ($read = ''; !str_contains($read, $text); $read .= $chunk) {
            [$ready, $none] = [[$stream], null];
            $chunk = stream_select($ready, $none, $none, (int) Timing::DEADLINE, 0) === 1 ? (string) fread($stream, 65536) : '';
            if ($chunk === '') {
                throw new \RuntimeException("There was no \"$text\" in: $read");
            }
        }

        return $read;
    }

    /** Bytes on a connection that the server keeps; the answer's head comes back. */
    public function head(string $bytes): string
    {
        $socket = $this->connect();
        fwrite($socket, $bytes);

        return strstr(self::readUntil($socket, "\r\n\r\n"), "\r\n\r\n", true) . "\r\n\r\n";
    }

    /** @return array{int, string} exit code and output of curl */
    public function curl(string $path, string ...$arguments): array
    {
        $curl = Execution::of(['curl', '-sS', '--max-time', (string) Timing::DEADLINE, ...$this->target($path, $arguments)]);

        return [$curl->exitCode, $curl->output . $curl->errors];
    }

    /** A curl whose output is read as it comes. */
    public function follow(string $path, string ...$arguments): Curl
    {
        return new Curl($this->target($path, $arguments));
    }

    /**
     * @param list<string> $arguments
     *
     * @return list<string>
     */
    private function target(string $path, array $arguments): array
    {
        $unix = str_starts_with($this->address, 'unix:');
        $socket = $unix ? ['--unix-socket', substr($this->address, 5)] : [];

        return [...$socket, ...$arguments, $unix ? "http://localhost$path" : "http://$this->address$path"];
    }

    public function get(string $path, string ...$arguments): string
    {
        return $this->curl($path, '-i', ...$arguments)[1];
    }
}
