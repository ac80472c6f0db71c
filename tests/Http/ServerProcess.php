<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use Weft\Tests\Program;

/** A program with an HTTP server. */
final class ServerProcess extends Program
{
    /**
     * @param string $routes PHP code that adds to `$routes`, a Router
     * @param string $arguments of `App::http()` after the address
     */
    public static function start(string $routes, string $arguments = '', string $address = '127.0.0.1:0', string $app = ''): self
    {
        $program = (string) tempnam(sys_get_temp_dir(), 'weft');
        file_put_contents($program, self::program($routes, $arguments, $address, $app));

        return self::launch([$program], $program);
    }

    private static function program(string $routes, string $arguments, string $address, string $app): string
    {
        $autoload = var_export(\dirname(__DIR__, 2) . '/autoload.php', true);

        return <<<PHP
            <?php
            require $autoload;
            use Weft\App;
            use Weft\Http\{BadRequest, BodyWriter, Certificate, Compression, Cookie, EventWriter, FormLimits, HttpException, Limits, NotFound, Request, Response, Router, ServerSentEvent, Tls, TlsFailed, WebSocket};
            use function Weft\{async, delay, tasks};
            \$app = new App($app);
            \$routes = \$app->http('$address'$arguments);
            $routes
            \$app->run(static function (array \$addresses): void { echo \$addresses[0], "\n"; });
            echo "ended\n";
            PHP;
    }

    /** Bytes on a connection of their own, as they are; what comes back until the server closes it or says nothing for a while. */
    public function exchange(string $bytes, float $patience = 5.0): string
    {
        $socket = $this->connect();
        fwrite($socket, $bytes);

        return self::readAll($socket, $patience);
    }

    /** @param resource $socket */
    public static function readAll($socket, float $patience = 5.0): string
    {
        stream_set_timeout($socket, (int) $patience, (int) (($patience - (int) $patience) * 1e6));
        $text = '';
        while (!feof($socket)) {
            $chunk = fread($socket, 65536);
            if ($chunk === false || $chunk === '' && stream_get_meta_data($socket)['timed_out']) {
                break;
            }
            $text .= $chunk;
        }

        return $text;
    }

    /** @return array{int, string} exit code and output of curl */
    public function curl(string $path, string ...$arguments): array
    {
        $unix = str_starts_with($this->address, 'unix:');
        $url = $unix ? "http://localhost$path" : "http://$this->address$path";
        $socket = $unix ? ['--unix-socket', substr($this->address, 5)] : [];
        $process = proc_open(['curl', '-sS', '--max-time', '10', ...$socket, ...$arguments, $url], [1 => ['pipe', 'w'], 2 => ['pipe', 'w']], $pipes);
        $output = stream_get_contents($pipes[1]);
        $errors = stream_get_contents($pipes[2]);

        return [proc_close($process), $output . $errors];
    }

    public function get(string $path, string ...$arguments): string
    {
        return $this->curl($path, '-i', ...$arguments)[1];
    }
}
