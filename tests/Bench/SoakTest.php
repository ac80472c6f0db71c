<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

/** The long runs, for seconds: that they come to their end, say how far they are, and judge what they have measured. */
final class SoakTest extends TestCase
{
    private const LIMIT = 600.0;

    /**
     * @dataProvider programs
     *
     * @param \Closure(array<string, mixed>): bool $sound what is so however fast the machine is
     * @param \Closure(array<string, mixed>): bool $fast  what the exit code says besides
     */
    #[DataProvider('programs')]
    public function testASmallRunSaysHowFarItIsAndJudges(string $command, string $file, \Closure $sound, \Closure $fast): void
    {
        [$code, $output, $errors, $result] = self::soak($command, $file);

        self::assertMatchesRegularExpression('/^ +\d+ s  .*\d/m', $errors, 'how far it is');
        self::assertTrue($sound($result), $output . $errors);
        self::assertSame($fast($result) ? 0 : 1, $code, $output . $errors);
    }

    /** @return iterable<string, array{string, string, \Closure, \Closure}> */
    public static function programs(): iterable
    {
        yield 'inbox' => [
            'inbox 4000', 'inbox',
            static fn(array $result): bool => [$result['rows'], $result['purged']] === [4_000, 2_000],
            static fn(array $result): bool => \max($result['insert']['p99_ms'], $result['insert_during_purge']['p99_ms']) < 2.0,
        ];
        yield 'relay' => [
            'relay 3', 'relay-soak',
            static fn(array $result): bool => [$result['skipped'], $result['ghosts'], $result['left']] === [0, 0, 0] && $result['committed'] > 0,
            static fn(): bool => true,
        ];
        foreach (['database', 'queues'] as $where) {
            yield "delays, {$where}" => [
                "delays 500 2 {$where}", "delays-{$where}",
                static fn(array $result): bool => [$result['missing'], $result['twice']] === [0, 0] && $result['earliest_s'] > -0.002,
                static fn(array $result): bool => $result['short_p99_s'] < 0.1 && $result['long_p99_s'] < 1.0,
            ];
        }
        yield 'order' => [
            'order 200 20 1', 'order',
            static fn(array $result): bool => [$result['keys_out_of_order'], $result['keys_blocked'], $result['waited']] === [0, 2, 20],
            static fn(array $result): bool => $result['percent'] >= 95.0,
        ];
        yield 'keys' => [
            'keys 2 30000', 'keys',
            static fn(array $result): bool => [$result['handled'], $result['out_of_order'], $result['handlers_at_a_time'] <= 2, $result['tasks_most'] < 100] === [60_000, 0, true, true],
            static fn(array $result): bool => $result['memory_at_the_end'] < $result['memory_after_a_fifth'] * 1.1,
        ];
        foreach (['rabbitmq', 'postgres'] as $where) {
            yield "fairness, {$where}" => [
                "fairness 3000 {$where}", "fairness-{$where}",
                static fn(array $result): bool => [$result['flood'], $result['missing']] === [3_000, 0],
                static fn(array $result): bool => $result['after_messages'] > 0 && $result['after_p99_s'] < 0.1,
            ];
        }
        yield 'memory' => [
            'memory 4', 'memory',
            static fn(array $result): bool => $result['messages'] > 0 && \count($result['resident_mib']) > 2,
            static fn(array $result): bool => $result['growth_percent'] < 5.0,
        ];
    }

    public function testTooFewKeysAreRefused(): void
    {
        [$code, , $errors] = self::soak('order 99 10', 'order');

        self::assertSame(2, $code);
        self::assertStringContainsString('at least 100 keys', $errors);
    }

    /** @return array{int, string, string, array<string, mixed>} */
    private static function soak(string $command, string $file): array
    {
        $directory = \sys_get_temp_dir() . '/weft-soak-' . \bin2hex(\random_bytes(6));
        \mkdir($directory);
        try {
            $arguments = \explode(' ', $command);
            $process = \proc_open(
                [\PHP_BINARY, '-d', 'extension=' . self::setting('WEFT_EXTENSION'), \dirname(__DIR__, 2) . "/bench/soak/{$arguments[0]}", ...\array_slice($arguments, 1)],
                [1 => ['file', "{$directory}/output", 'w'], 2 => ['file', "{$directory}/errors", 'w']],
                $pipes,
                null,
                ['WEFT_BENCH_OUT' => $directory] + \getenv(),
            );
            self::assertIsResource($process);
            $code = self::await($process);
            $result = \json_decode((string) @\file_get_contents("{$directory}/{$file}.json"), true) ?? [];

            return [$code, (string) \file_get_contents("{$directory}/output"), (string) \file_get_contents("{$directory}/errors"), $result];
        } finally {
            \array_map('unlink', \glob("{$directory}/*") ?: []);
            \rmdir($directory);
        }
    }

    /** @param resource $process */
    private static function await($process): int
    {
        $until = \microtime(true) + self::LIMIT;
        while (($status = \proc_get_status($process))['running']) {
            if (\microtime(true) > $until) {
                \proc_terminate($process, \SIGKILL);
                self::fail('it has not ended within ' . self::LIMIT . ' seconds');
            }
            \usleep(20_000);
        }

        return $status['exitcode'];
    }

    private static function setting(string $name): string
    {
        $value = \getenv($name);
        self::assertNotFalse($value, "{$name} is not set");

        return $value;
    }
}
