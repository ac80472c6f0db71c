<?php

declare(strict_types=1);

namespace Weft\Bench;

/** TCP ports on the loopback interface. */
final class Port
{
    private const ATTEMPTS = 200;

    /**
     * A free port below the ephemeral range (32768 and up), where an outgoing connection could take it first.
     *
     * @throws BenchmarkException when none is found
     */
    public static function free(): int
    {
        for ($attempt = 0; $attempt < self::ATTEMPTS; ++$attempt) {
            $port = random_int(20_000, 32_000);
            $socket = @stream_socket_server("tcp://127.0.0.1:$port");
            if ($socket !== false) {
                fclose($socket);

                return $port;
            }
        }
        throw new BenchmarkException('no free port found between 20000 and 32000');
    }

    public static function accepts(int $port): bool
    {
        $socket = @stream_socket_client("tcp://127.0.0.1:$port", timeout: 1.0);
        if ($socket === false) {
            return false;
        }
        fclose($socket);

        return true;
    }
}
