<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

/** Programs of others that judge ours. */
final class Tool
{
    /** @var array<string, true> what scripts/grpc-tools was asked for */
    private static array $installed = [];

    /**
     * @param list<string> $arguments
     *
     * @return array{int, string} exit code and what it wrote; 124 when it took longer than that
     */
    public static function run(string $name, array $arguments, int $seconds = 120): array
    {
        $command = ['timeout', '-k', '1', (string) $seconds, self::path($name), ...$arguments];
        $process = proc_open($command, [['file', '/dev/null', 'r'], ['pipe', 'w'], ['redirect', 1]], $pipes);
        $output = (string) stream_get_contents($pipes[1]);

        return [proc_close($process), $output];
    }

    public static function path(string $name): string
    {
        return self::installed("bin/$name-v*");
    }

    /** What is no program: modules, archives. */
    public static function directory(string $name): string
    {
        return \dirname(self::installed("$name-*/done", $name));
    }

    private static function installed(string $pattern, string ...$wanted): string
    {
        $root = \dirname(__DIR__, 2);
        $tools = implode(' ', $wanted);
        if (!isset(self::$installed[$tools])) {
            exec("timeout 600 $root/scripts/grpc-tools $tools 2>&1", $output, $code);
            self::$installed[$tools] = $code === 0 ?: throw new \RuntimeException('scripts/grpc-tools failed: ' . implode("\n", $output));
        }
        $found = glob((getenv('WEFT_VAR') ?: "$root/var") . "/$pattern") ?: [];

        return $found[0] ?? throw new \RuntimeException("scripts/grpc-tools did not install $pattern");
    }
}
