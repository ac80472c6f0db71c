<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

/**
 * Runs before every test of a PHPUnit process. It reports a server that an earlier test left down once and starts it
 * again, so that later tests do not fail for it. It records which test runs and why tests were skipped in
 * `WEFT_TEST_DIRECTORY`, for the process that started PHPUnit.
 */
final class Guard
{
    private static ?self $instance = null;

    private ?string $previous = null;

    public function __construct(private readonly ?Servers $servers, private readonly ?string $directory)
    {
    }

    /** The one of this process. */
    public static function instance(): self
    {
        return self::$instance ??= self::fromEnvironment();
    }

    public function beforeTest(string $test): void
    {
        $down = $this->servers?->down() ?? [];
        if ($down !== []) {
            // Before the first test nobody has broken anything: the machine may have been restarted.
            $this->previous === null || $this->report(\implode(' and ', $down) . " was down before $test; the test before it was {$this->previous}");
            $this->servers?->start();
        }
        $this->previous = $test;
        $this->directory === null || \file_put_contents("{$this->directory}/progress", $test);
    }

    public function skipped(string $test, string $reason): void
    {
        $this->append('skips', "$test\t$reason");
    }

    private static function fromEnvironment(): self
    {
        $directory = \getenv('WEFT_TEST_DIRECTORY') ?: null;
        $file = \getenv('WEFT_TEST_SERVERS') ?: (\getenv('WEFT_VAR') ?: \dirname(__DIR__, 2) . '/var') . '/services/env';

        return new self(\is_file($file) ? new Servers($file) : null, $directory);
    }

    private function report(string $incident): void
    {
        \fwrite(\STDERR, "\n$incident; it is started again\n");
        $this->append('incidents', $incident);
        if ($this->directory === null) {
            // PHPUnit run by hand: its own result does not tell.
            \register_shutdown_function(static fn () => exit(1));
        }
    }

    private function append(string $file, string $line): void
    {
        $this->directory === null || \file_put_contents("{$this->directory}/$file", \strtr($line, "\n", ' ') . "\n", \FILE_APPEND);
    }
}
