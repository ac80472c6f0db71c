<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\TestCase;
use Weft\Bench\Port;
use Weft\Tests\Timing;

require_once __DIR__ . '/../../bench/autoload.php';

/** The suite in a repository of its own, whose benchmarks and servers are made for the test. */
final class SuiteTest extends TestCase
{
    /** Says that PostgreSQL runs already, and writes down what it is told. */
    private const SERVICES = <<<'SH'
        #!/bin/sh
        cd "$(dirname "$0")/.."
        echo "$*" >>services.log
        mkdir -p var/services
        echo "export DATABASE_URL='postgres://there'" >var/services/env
        [ "$1" != status ] || printf 'rabbitmq  stopped\npostgres  running  pid 1\nmariadb   stopped\n'
        SH;

    private string $root;

    protected function setUp(): void
    {
        $this->root = sys_get_temp_dir() . '/weft-suite-' . bin2hex(random_bytes(4));
        mkdir("{$this->root}/scripts", recursive: true);
        $this->script('scripts/services', self::SERVICES);
    }

    protected function tearDown(): void
    {
        exec('rm -rf ' . escapeshellarg($this->root));
    }

    public function testABenchmarkThatFailsIsNamedWithItsLogAndTheOthersRun(): void
    {
        $this->benchmark('http', 'echo requests from $DATABASE_URL');
        $this->benchmark('grpc', 'echo no compiler >&2; exit 2');
        $this->benchmark('rinha', 'echo "$@"; exit 1');

        [$code, $output] = $this->runSuite('--only=http,grpc,rinha', '--short');

        self::assertSame(1, $code, $output);
        self::assertStringContainsString('requests from postgres://there', $output);
        $runs = array_column(json_decode((string) file_get_contents("{$this->root}/bench/out/suite.json"), true)['runs'], null, 'benchmark');
        self::assertSame([0, 2, 1], array_column($runs, 'exit_code'));
        self::assertStringContainsString('no compiler', (string) file_get_contents($runs['grpc']['log']));
        self::assertMatchesRegularExpression('/^grpc .* could not run .*grpc\.log$/m', $output);
        self::assertStringContainsString('--short', (string) file_get_contents($runs['rinha']['log']));
    }

    public function testOnlyServersThatItStartedAreStopped(): void
    {
        $this->benchmark('bus', 'true');

        [$code, $output] = $this->runSuite('--only=bus');

        self::assertSame(0, $code, $output);
        self::assertSame("status\nstart rabbitmq\nstop rabbitmq\n", file_get_contents("{$this->root}/services.log"));
    }

    public function testAServerThatDoesNotStartCostsOnlyTheBenchmarkThatNeedsIt(): void
    {
        $this->script('scripts/services', '#!/bin/sh' . "\n" . '[ "$1" != start ] || { echo no space left >&2; exit 1; }');
        $this->benchmark('bus', 'true');
        $this->benchmark('grpc', 'true');

        [$code, $output] = $this->runSuite('--only=bus,grpc');

        self::assertSame(1, $code, $output);
        self::assertStringContainsString('scripts/services start rabbitmq exited with code 1', $output);
        self::assertMatchesRegularExpression('/^grpc .* finished /m', $output);
    }

    public function testASignalEndsTheBenchmarkWithItsContendersAndStopsWhatWasStarted(): void
    {
        $port = Port::free();
        $autoload = var_export(dirname(__DIR__, 2) . '/bench/autoload.php', true);
        $server = var_export('$s = stream_socket_server("tcp://127.0.0.1:" . $argv[1]); sleep(60);', true);
        $this->script('bench/bus/run', <<<PHP
            #!/usr/bin/env php
            <?php
            require $autoload;
            Weft\\Bench\\Script::run('bus', '', static function (): int {
                \$server = Weft\\Bench\\Server::start([PHP_BINARY, '-n', '-r', $server, '--', '$port'], [], __DIR__ . '/log', $port);
                try {
                    exec('exec sleep 60');
                    return 0;
                } finally {
                    \$server->stop();
                }
            });
            PHP);
        $process = proc_open($this->command('--only=bus'), [['file', '/dev/null', 'r'], ['pipe', 'w'], ['redirect', 1]], $pipes);
        Timing::until(static fn (): bool => Port::accepts($port), 'the contender starts');

        proc_terminate($process, SIGINT);
        $output = stream_get_contents($pipes[1]);

        self::assertSame(128 + SIGINT, proc_close($process), $output);
        self::assertFalse(Port::accepts($port), 'the contender is left behind');
        self::assertStringEndsWith("stop rabbitmq\n", (string) file_get_contents("{$this->root}/services.log"));
    }

    public function testAServerThatNobodyNeedsAnyMoreIsStoppedBeforeTheNextBenchmark(): void
    {
        $this->benchmark('bus', 'true');
        $this->benchmark('grpc', "cat {$this->root}/services.log");

        [$code, $output] = $this->runSuite('--only=bus,grpc');

        self::assertSame(0, $code, $output);
        self::assertStringContainsString("stop rabbitmq\n", (string) file_get_contents("{$this->root}/bench/out/logs/grpc.log"));
    }

    public function testAServerThatDoesNotStopCostsNoResult(): void
    {
        $this->script('scripts/services', str_replace('[ "$1" !=', '[ "$1" != stop ] || exit 1' . "\n" . '[ "$1" !=', self::SERVICES));
        $this->benchmark('bus', 'true');

        [$code, $output] = $this->runSuite('--only=bus');

        self::assertSame(0, $code, $output);
        self::assertStringContainsString('scripts/services stop rabbitmq exited with code 1', $output);
        self::assertMatchesRegularExpression('/^bus .* finished /m', $output);
    }

    public function testItSaysHowLongItIsLikelyToTake(): void
    {
        $this->benchmark('bus', 'true');
        $this->benchmark('grpc', 'true');

        [, $first] = $this->runSuite('--only=bus,grpc');
        [, $second] = $this->runSuite('--only=bus,grpc');

        self::assertStringContainsString('=== bus, about 19 min; then grpc, about 12 min', $first);
        self::assertMatchesRegularExpression('/=== bus, about \d+ s; then grpc, about \d+ s/', $second);
    }

    public function testResultsCompletedBeforeASignalAreKept(): void
    {
        $this->benchmark('grpc', 'true');
        $this->benchmark('rinha', 'kill -INT $PPID; exec sleep 60');

        [$code, $output] = $this->runSuite('--only=grpc,rinha');

        self::assertSame(128 + SIGINT, $code, $output);
        self::assertStringContainsString("completed results are in {$this->root}/bench/out", $output);
        self::assertSame(['grpc'], array_column(json_decode((string) file_get_contents("{$this->root}/bench/out/suite.json"), true)['runs'], 'benchmark'));
    }

    public function testABenchmarkThatDoesNotExistIsRefused(): void
    {
        [$code, $output] = $this->runSuite('--only=redis');

        self::assertSame(2, $code);
        self::assertStringContainsString("there is no benchmark 'redis', there are: bus pool http grpc rinha", $output);
    }

    private function benchmark(string $name, string $shell): void
    {
        $this->script("bench/$name/run", "#!/bin/sh\n$shell\n");
    }

    private function script(string $path, string $text): void
    {
        @mkdir(dirname("{$this->root}/$path"), recursive: true);
        file_put_contents("{$this->root}/$path", $text);
        chmod("{$this->root}/$path", 0o755);
    }

    /** @return array{int, string} exit code and output */
    private function runSuite(string ...$arguments): array
    {
        exec(implode(' ', array_map(escapeshellarg(...), $this->command(...$arguments))) . ' 2>&1', $lines, $code);

        return [$code, implode("\n", $lines)];
    }

    /** @return list<string> */
    private function command(string ...$arguments): array
    {
        $code = 'require $argv[1]; [$root, $rest] = [$argv[2], array_slice($argv, 3)]; $_SERVER["argv"] = ["suite", ...$rest];'
            . 'Weft\Bench\Script::run("suite", "", static fn (array $arguments): int =>'
            . ' (new Weft\Bench\Suite\Suite($root, Weft\Bench\Suite\Options::parse($arguments, $root)))->run());';

        return ['env', '-u', 'WEFT_VAR', PHP_BINARY, '-r', $code, '--', dirname(__DIR__, 2) . '/bench/autoload.php', $this->root, ...$arguments];
    }
}
