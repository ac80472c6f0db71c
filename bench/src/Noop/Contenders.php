<?php

declare(strict_types=1);

namespace Weft\Bench\Noop;

use Weft\Bench\BenchmarkException;

/** All contenders, built if necessary. */
final class Contenders
{
    /** As anybody runs a worker that matters. */
    private const PHP = [PHP_BINARY, '-d', 'opcache.enable_cli=1'];

    /**
     * @param string $root the repository
     * @param array<string, string> $environment of every run
     */
    public function __construct(
        private readonly string $root,
        private readonly Options $options,
        private readonly array $environment,
    ) {
    }

    /**
     * @return non-empty-list<Contender>
     *
     * @throws BenchmarkException for an unknown name, or a failed build
     */
    public function selected(): array
    {
        $makers = [
            'weft-client' => fn (): Contender => $this->weft('weft-client', 'client.php'),
            'weft-bus' => fn (): Contender => $this->weft('weft-bus', 'bus.php'),
            'go' => $this->go(...),
            'ext-amqp' => fn (): Contender => $this->printing('ext-amqp', [...self::PHP, "{$this->root}/bench/noop/peers/ext-amqp/app.php"]),
            'perf-test' => $this->perfTest(...),
        ];
        $names = $this->options->only ?: array_keys($makers);
        $unknown = array_diff($names, array_keys($makers));
        if ($unknown !== []) {
            throw new BenchmarkException('there is no contender ' . implode(' or ', $unknown) . ', there are: ' . implode(' ', array_keys($makers)));
        }

        return array_map(static fn (string $name): Contender => $makers[$name](), array_values($names));
    }

    private function weft(string $name, string $program): Contender
    {
        if (!is_file($this->options->extension)) {
            throw new BenchmarkException("{$this->options->extension} is not there: make build, or name it with --extension");
        }

        return $this->printing($name, [...self::PHP, '-d', "extension={$this->options->extension}", "{$this->root}/bench/noop/weft/$program"]);
    }

    private function go(): Contender
    {
        $program = "{$this->root}/bench/out/noop-go";
        self::build(['go', '-C', "{$this->root}/bench/noop/peers/go", 'build', '-o', $program, '.']);

        return $this->printing('go', [$program]);
    }

    /** @param list<string> $command whose last argument is the action, and which prints the seconds as JSON */
    private function printing(string $name, array $command): Contender
    {
        return new Contender(
            $name,
            static fn (string $action): array => [...$command, $action],
            static fn (string $output): float => json_decode($output, true)['seconds'] ?? throw new BenchmarkException("its output has no number seconds: $output"),
        );
    }

    /** It counts the seconds in which it published or received, and so does its average. */
    private function perfTest(): Contender
    {
        $file = "{$this->root}/bench/out/perf-test-classpath";
        self::build(['mvn', '-B', '-q', '-f', "{$this->root}/bench/noop/peers/perf-test/pom.xml", 'dependency:build-classpath', "-Dmdep.outputFile=$file"]);
        [$url, $queue, $total, $window, $bytes] = array_values($this->environment);
        $common = [
            'java', '-cp', trim((string) file_get_contents($file)), 'com.rabbitmq.perf.PerfTest',
            '--uri', $url, '--predeclared', '--queue', $queue, '--routing-key', $queue, '--exchange', '', '--skip-binding-queues', '--id', 'noop',
        ];
        $publish = ['-y', '0', '-C', $total, '-c', $window, '-s', $bytes, '-f', 'persistent'];
        $consume = ['-x', '0', '-D', $total, '-q', $window];

        return new Contender(
            'perf-test',
            static fn (string $action): array => [...$common, ...($action === 'publish' ? $publish : $consume)],
            static fn (string $output): float => preg_match('/(?:sending|receiving) rate avg: ([1-9]\d*)/', $output, $match)
                ? (int) $total / (int) $match[1]
                : throw new BenchmarkException('its output has no average rate: ' . substr($output, -300)),
        );
    }

    /** @param list<string> $command */
    private static function build(array $command): void
    {
        passthru(implode(' ', array_map(escapeshellarg(...), $command)) . ' >&2', $code);
        $code === 0 || throw new BenchmarkException("{$command[0]} exited with code $code");
    }
}
