<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

/** Turns what is to be tested into jobs of a useful length. */
final class Catalogue
{
    /** Seconds of work that one PHPUnit process shall have at least, where one file is too short. */
    private const BATCH = 6.0;

    private const JIT = ['-d', 'opcache.enable_cli=1', '-d', 'opcache.jit=function', '-d', 'opcache.jit_buffer_size=64M'];

    public function __construct(private readonly string $root, private readonly Times $times)
    {
    }

    /** @return list<Job> everything there is in PHP */
    public function php(): array
    {
        return [
            $this->extension(),
            ...$this->batches(self::files("{$this->root}/tests")),
            // Compiled code takes other paths through the engine, and through its bugs.
            ...$this->batches(self::files("{$this->root}/tests/Runtime"), self::JIT, 'JIT'),
        ];
    }

    /** @return list<Job> the suite "quick" of phpunit.xml.dist */
    public function quick(): array
    {
        $document = \simplexml_load_file("{$this->root}/phpunit.xml.dist") ?: throw new \RuntimeException('phpunit.xml.dist cannot be read');
        [$suite] = $document->xpath('//testsuite[@name="quick"]') ?: throw new \RuntimeException('phpunit.xml.dist has no suite "quick"');
        $files = [];
        foreach ($suite->xpath('directory | file') ?: [] as $path) {
            \array_push($files, ...self::files("{$this->root}/$path"));
        }
        foreach ($suite->xpath('exclude') ?: [] as $path) {
            $files = \array_diff($files, self::files("{$this->root}/$path"));
        }

        return [$this->extension(), ...$this->batches(\array_values($files))];
    }

    /**
     * @param list<string> $paths
     *
     * @return list<Job>
     */
    public function paths(array $paths): array
    {
        $files = [];
        foreach ($paths as $path) {
            \array_push($files, ...self::files((string) \realpath($path)));
        }

        return $this->batches($files);
    }

    /** @return list<Job> Cargo builds the programs first, which takes a while after a change */
    public function rust(): array
    {
        $jobs = [];
        foreach ($this->rustPrograms() as $name => [$program, $directory]) {
            $jobs[] = new RustJob("cargo test $name", $directory, [$program], $this->times->of("cargo test $name", 60.0));
        }
        $documentation = ['cargo', 'test', '--locked', '--package', 'weft-core', '--doc'];
        $jobs[] = new RustJob('cargo test --doc', $this->root, $documentation, $this->times->of('cargo test --doc', 20.0));

        return $jobs;
    }

    /** @return list<Job> */
    public function protobuf(): array
    {
        return [new ProtobufJob($this->root, $this->times->of('scripts/protobuf-conformance', 60.0))];
    }

    private function extension(): Job
    {
        return new ProgramJob('the extension loads', [\PHP_BINARY, '-d', 'extension=' . \getenv('WEFT_EXTENSION'), '--ri', 'weft']);
    }

    /** @return array<string, array{string, string}> program and directory by name */
    private function rustPrograms(): array
    {
        $command = 'cargo test --locked --package weft-core --no-run --message-format=json-render-diagnostics';
        \exec('cd ' . \escapeshellarg($this->root) . " && $command", $lines, $code);
        $code === 0 || throw new \RuntimeException("`$command` ended with exit code $code");
        $programs = [];
        foreach ($lines as $line) {
            $message = \json_decode($line, true);
            if (($message['profile']['test'] ?? false) === true && \is_string($message['executable'] ?? null)) {
                $kind = $message['target']['kind'][0];
                $name = $kind === 'test' ? "--test {$message['target']['name']}" : "--$kind";
                $programs[$kind === 'example' || $kind === 'bin' ? "$name {$message['target']['name']}" : $name] = [$message['executable'], \dirname($message['manifest_path'])];
            }
        }

        return $programs;
    }

    /**
     * Long files are jobs of their own; short ones share a process, neighbours in the alphabet with each other.
     *
     * @param list<string> $files
     * @param list<string> $options
     *
     * @return list<PhpJob>
     */
    private function batches(array $files, array $options = [], string $label = ''): array
    {
        $jobs = $batch = [];
        $sum = 0.0;
        $close = function () use (&$jobs, &$batch, &$sum, $options, $label): void {
            $batch === [] || $jobs[] = new PhpJob($this->root, $batch, $sum, $options, $label);
            [$batch, $sum] = [[], 0.0];
        };
        foreach ($files as $file) {
            $seconds = $this->times->of($file . $label, 2.0);
            if ($seconds >= self::BATCH) {
                $jobs[] = new PhpJob($this->root, [$file], $seconds, $options, $label);
                continue;
            }
            $batch[] = $file;
            $sum += $seconds;
            $sum < self::BATCH || $close();
        }
        $close();

        return $jobs;
    }

    /** @return list<string> test files, relative to the root */
    private function files(string $path): array
    {
        $all = [$path];
        if (\is_dir($path)) {
            $all = \iterator_to_array(new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($path, \FilesystemIterator::CURRENT_AS_PATHNAME)), false);
        }
        $tests = \preg_filter('~^' . \preg_quote($this->root) . '/(.*Test\.php)$~', '$1', $all);
        \sort($tests);

        return $tests;
    }
}
