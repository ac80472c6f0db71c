<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

use Weft\Cli\ApplicationFileException;
use Weft\Http\Internal\State\StateWatch;
use Weft\Runtime\CancelledException;
use Weft\Workers\Internal\Signal;

use function Weft\delay;
use function Weft\run;

/**
 * Serves an application in a process of its own, and sends it requests.
 *
 * @internal
 */
final class StateCheck
{
    /** Seconds until the application listens, and for each request. */
    private const TIMEOUT = 60.0;

    /** Seconds until it looks again. */
    private const TICK = 0.02;
    /** Seconds after the address of a Unix socket in which another address may be logged. */
    private const MORE_ADDRESSES = 1.0;

    /**
     * @param list<string> $paths
     * @param list<string> $headers
     */
    public function __construct(private readonly string $file, private readonly array $paths, private readonly array $headers, private readonly int $repeat) {}

    /**
     * @return list<array{request: string, name: string, kind: string, before: string}>
     *
     * @throws ApplicationFileException the application does not listen, or does not answer
     * @throws CancelledException a signal has ended the check
     */
    public function run(): array
    {
        return run($this->check(...), cancelOn: [Signal::SIGHUP->value, Signal::SIGINT->value, Signal::SIGTERM->value]);
    }

    /** @return list<array{request: string, name: string, kind: string, before: string}> */
    private function check(): array
    {
        $report = (string) \tempnam(\sys_get_temp_dir(), 'weft');
        $log = (string) \tempnam(\sys_get_temp_dir(), 'weft');
        // Symfony's and Laravel's listen where this says; others where their program does.
        $environment = [StateWatch::VARIABLE => $report, 'WEFT_LISTEN' => '127.0.0.1:0', 'WEFT_LOG_LEVEL' => 'info'] + \getenv();
        $process = \proc_open([\PHP_BINARY, ...Interpreter::options(), $this->file], [['file', '/dev/null', 'r'], ['file', '/dev/null', 'w'], ['file', $log, 'w']], $pipes, null, $environment);
        if ($process === false) {
            throw new ApplicationFileException("PHP cannot be started for {$this->file}.");
        }
        try {
            $address = $this->address($process, $log);
            for ($round = 0; $round < $this->repeat; $round++) {
                foreach ($this->paths as $path) {
                    $this->request($address, $path);
                }
            }
            $this->stop($process);

            return self::findings($report);
        } finally {
            $this->stop($process);
            \proc_close($process);
            \unlink($report);
            \unlink($log);
        }
    }

    /** @param resource $process */
    private function address($process, string $log): string
    {
        $socketSince = null;
        for ($until = \microtime(true) + self::TIMEOUT; \microtime(true) < $until; delay(self::TICK)) {
            if (\preg_match('~listening on (?:https?://)?([^\s"]+:\d+)~', (string) \file_get_contents($log), $found) === 1) {
                return \str_replace('0.0.0.0', '127.0.0.1', $found[1]);
            }
            if (\preg_match('~listening on (unix:[^\s"]+)~', (string) \file_get_contents($log), $found) === 1) {
                $socketSince ??= \microtime(true);
                if (\microtime(true) - $socketSince >= self::MORE_ADDRESSES) {
                    throw new ApplicationFileException(
                        "{$this->file} listens on {$found[1]} only, and the requests of this command need a TCP address: "
                        . 'let it listen on the address in WEFT_LISTEN, which this command sets.',
                    );
                }
            }
            if (!\proc_get_status($process)['running']) {
                throw new ApplicationFileException("{$this->file} has ended before it listened:\n" . \trim((string) \file_get_contents($log)));
            }
        }
        throw new ApplicationFileException("{$this->file} listens on no TCP address within " . self::TIMEOUT . ' s.');
    }

    private function request(string $address, string $path): void
    {
        $context = \stream_context_create(['http' => ['header' => $this->headers, 'ignore_errors' => true, 'follow_location' => 0, 'timeout' => self::TIMEOUT]]);
        $url = "http://$address/" . \ltrim($path, '/');
        if (@\file_get_contents($url, false, $context) === false) {
            throw new ApplicationFileException("{$this->file} does not answer GET /" . \ltrim($path, '/') . " at {$address}.");
        }
    }

    /** @param resource $process */
    private function stop($process): void
    {
        \proc_terminate($process);
        for ($until = \microtime(true) + self::TIMEOUT; \microtime(true) < $until && \proc_get_status($process)['running']; delay(self::TICK));
        \proc_get_status($process)['running'] && \proc_terminate($process, Signal::SIGKILL->value);
    }

    /** @return list<array{request: string, name: string, kind: string, before: string}> */
    private static function findings(string $report): array
    {
        $findings = [];
        foreach (\file($report, \FILE_IGNORE_NEW_LINES) ?: [] as $line) {
            /** @var array{request: string, name: string, kind: string, before: string} $finding */
            $finding = \json_decode($line, true, flags: \JSON_THROW_ON_ERROR);
            $findings[] = $finding;
        }
        \usort($findings, static fn(array $one, array $other): int => [$one['request'], $one['name']] <=> [$other['request'], $other['name']]);

        return $findings;
    }
}
