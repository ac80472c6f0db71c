<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\TestCase;
use Weft\Tests\Http\Directory;
use Weft\Tests\Runtime\Subprocess;

/** What a wait costs in system calls: two tasks send a line to and fro, and each waits for the other's. */
final class SystemCallsTest extends TestCase
{
    private const PROGRAM = <<<'PHP'
        run(function () {
            [$near, $far] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
            async(function () use ($far) {
                while (($line = fgets($far)) !== false) {
                    fwrite($far, $line);
                }
            });
            for ($i = 0; $i < ROUNDS; $i++) {
                fwrite($near, "line\n");
                fgets($near);
            }
            stream_socket_shutdown($near, STREAM_SHUT_WR);
        });
        PHP;
    private const ROUNDS = 500;

    public function testAWaitRegistersItsSocketAndAsksOnce(): void
    {
        [$few, $many] = [self::systemCalls(self::ROUNDS), self::systemCalls(3 * self::ROUNDS)];

        $perWait = [];
        foreach ($many as $name => $count) {
            $perWait[$name] = \round(($count - ($few[$name] ?? 0)) / (4 * self::ROUNDS), 1);
        }
        $perWait = \array_filter($perWait);
        \ksort($perWait);

        // Tokio's epoll instance, that of the waits inside of it, and one more where the turn of the event loop asks again.
        self::assertLessThanOrEqual(3.0, $perWait['epoll_wait']);
        unset($perWait['epoll_wait']);
        self::assertSame(['epoll_ctl' => 1.0, 'poll' => 1.0, 'recvfrom' => 1.0, 'sendto' => 1.0], $perWait);
    }

    public function testATaskThatIsAloneWaitsWithoutTheEventLoop(): void
    {
        $program = <<<'PHP'
            $process = proc_open(['sh', '-c', 'while read line; do sleep 0.01; echo $line; done'], [['socket'], ['socket']], $pipes);
            run(function () use ($pipes) {
                for ($i = 0; $i < ROUNDS; $i++) {
                    fwrite($pipes[0], "line\n");
                    fgets($pipes[1]) === "line\n" || exit(1);
                }
            });
            PHP;
        [$few, $many] = [self::systemCalls(5, $program), self::systemCalls(25, $program)];

        // The timer of earlier waits may go off once meanwhile.
        self::assertLessThan(10, $many['epoll_ctl'] - $few['epoll_ctl']);
        self::assertGreaterThan($few['ppoll'] + 10, $many['ppoll']);
    }

    /** @return array<string, int> calls by name */
    private static function systemCalls(int $rounds, string $program = self::PROGRAM): array
    {
        \is_executable('/usr/bin/strace') || self::markTestSkipped('strace is not installed');
        $directory = new Directory();
        try {
            $program = Subprocess::run("const ROUNDS = $rounds;" . $program, under: ['/usr/bin/strace', '-c', '-o', "$directory->path/counts"]);
            if (\str_contains($program->errors, 'ptrace')) {
                self::markTestSkipped("the system allows no tracing: $program->errors");
            }
            self::assertSame(0, $program->exitCode, $program->errors);
            \preg_match_all('/^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$/m', (string) \file_get_contents("$directory->path/counts"), $lines);
        } finally {
            $directory->remove();
        }

        return \array_diff_key(\array_map(intval(...), \array_combine($lines[2], $lines[1])), ['total' => 0]);
    }
}
