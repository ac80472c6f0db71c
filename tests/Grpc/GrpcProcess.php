<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use Weft\Tests\Program;
use Weft\Tests\Timing;

/** A program with a gRPC server. */
final class GrpcProcess extends Program
{
    /**
     * Calls with curl.
     *
     * @param string $body bytes as they go over the wire
     */
    public function post(string $path, string $body, string ...$arguments): Answer
    {
        $fields = (string) tempnam(sys_get_temp_dir(), 'weft-grpc');
        $command = ['curl', '-sS', '--max-time', (string) Timing::DEADLINE, '--http2-prior-knowledge', '-D', $fields, '-H', 'te: trailers', '-H', 'expect:', '--data-binary', '@-', ...$arguments, "http://$this->address$path"];
        if (array_filter($arguments, static fn(string $argument): bool => str_starts_with(strtolower($argument), 'content-type:')) === []) {
            array_splice($command, 1, 0, ['-H', 'content-type: application/grpc']);
        }
        $process = proc_open($command, [['pipe', 'r'], ['pipe', 'w'], ['pipe', 'w']], $pipes);
        fwrite($pipes[0], $body);
        fclose($pipes[0]);
        $output = (string) stream_get_contents($pipes[1]);
        $errors = (string) stream_get_contents($pipes[2]);
        $code = proc_close($process);
        $head = (string) file_get_contents($fields);
        unlink($fields);

        return new Answer($code, $head, $output, $errors);
    }
}
