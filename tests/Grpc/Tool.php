<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

/** Programs of others that judge ours. */
final class Tool
{
    private static bool $installed = false;

    /**
     * @param list<string> $arguments
     *
     * @return array{int, string} exit code and what it wrote; 124 when it took longer than that
     */
    public static function run(string $name, array $arguments, int $seconds = 30): array
    {
        $command = ['timeout', '-k', '1', (string) $seconds, self::path($name), ...$arguments];
        $process = proc_open($command, [['file', '/dev/null', 'r'], ['pipe', 'w'], ['redirect', 1]], $pipes);
        $output = (string) stream_get_contents($pipes[1]);

        return [proc_close($process), $output];
    }

    public static function path(string $name): string
    {
        $root = \dirname(__DIR__, 2);
        if (!self::$installed) {
            exec("timeout 600 $root/scripts/grpc-tools 2>&1", $output, $code);
            self::$installed = $code === 0 ?: throw new \RuntimeException('scripts/grpc-tools failed: ' . implode("\n", $output));
        }
        $programs = glob((getenv('WEFT_VAR') ?: "$root/var") . "/bin/$name-v*") ?: [];

        return $programs[0] ?? throw new \RuntimeException("scripts/grpc-tools did not install $name");
    }
}
