<?php

declare(strict_types=1);

namespace Weft\Tests;

use PHPUnit\Framework\TestCase;

/**
 * Debian's Chromium without a window, spoken to over a pair of pipes in the DevTools protocol: messages are JSON, each ended by a
 * zero byte.
 */
final class Chromium
{
    private const PROGRAMS = ['chromium', 'chromium-browser', 'google-chrome'];
    private const TIMEOUT_SECONDS = 180.0;

    /** @var resource */
    private $process;
    /** @var array<int, resource> */
    private array $pipes;
    private readonly string $profile;
    private readonly string $session;
    private string $received = '';
    private int $sent = 0;

    /** @var list<array<string, mixed>> what the browser told unasked: `method` and `params` */
    public array $events = [];

    /** The path of the browser; skips the test where none is installed. */
    public static function program(): string
    {
        foreach (self::PROGRAMS as $name) {
            $path = trim((string) shell_exec("command -v $name"));
            if ($path !== '') {
                return $path;
            }
        }
        TestCase::markTestSkipped('No Chromium is installed: scripts/setup test');
    }

    public function __construct()
    {
        $program = self::program();
        $this->profile = sys_get_temp_dir() . '/weft-chromium-' . bin2hex(random_bytes(4));
        mkdir($this->profile);
        $command = [
            $program, '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run',
            '--disable-background-networking', '--disable-component-update', '--remote-debugging-pipe',
            "--user-data-dir={$this->profile}", 'about:blank',
        ];
        $streams = [['file', '/dev/null', 'r'], ['file', '/dev/null', 'w'], ['file', '/dev/null', 'w'], ['pipe', 'r'], ['pipe', 'w']];
        $this->process = proc_open($command, $streams, $pipes, null, ['HOME' => $this->profile, 'TMPDIR' => $this->profile] + getenv())
            ?: throw new \RuntimeException('cannot start chromium');
        $this->pipes = $pipes;
        stream_set_blocking($this->pipes[4], false);
        $target = $this->ask('Target.createTarget', ['url' => 'about:blank'], false)['targetId'];
        $this->session = $this->ask('Target.attachToTarget', ['targetId' => $target, 'flatten' => true], false)['sessionId'];
    }

    /**
     * @param array<string, mixed> $parameters
     *
     * @return array<string, mixed> its result
     */
    public function ask(string $method, array $parameters = [], bool $ofThePage = true): array
    {
        $message = ['id' => ++$this->sent, 'method' => $method, 'params' => (object) $parameters];
        fwrite($this->pipes[3], json_encode($message + ($ofThePage ? ['sessionId' => $this->session] : []), JSON_THROW_ON_ERROR) . "\0");
        while (true) {
            $answer = $this->receive();
            if (($answer['id'] ?? null) === $this->sent) {
                return $answer['result'] ?? throw new \RuntimeException("$method: " . json_encode($answer['error']));
            }
            $this->events[] = $answer;
        }
    }

    /** Opens a page and waits until it has loaded. */
    public function open(string $url): void
    {
        $this->ask('Page.enable');
        $this->ask('Page.navigate', ['url' => $url]);
        while (!in_array('Page.loadEventFired', array_column($this->events, 'method'), true)) {
            $this->events[] = $this->receive();
        }
    }

    /** @return mixed what an expression comes to, a promise being awaited */
    public function evaluate(string $expression): mixed
    {
        $result = $this->ask('Runtime.evaluate', ['expression' => $expression, 'returnByValue' => true, 'awaitPromise' => true]);
        isset($result['exceptionDetails']) && throw new \RuntimeException(json_encode($result['exceptionDetails']));

        return $result['result']['value'] ?? null;
    }

    /** @return string the whole page as PNG */
    public function screenshot(): string
    {
        return base64_decode($this->ask('Page.captureScreenshot', ['captureBeyondViewport' => true])['data']);
    }

    public function close(): void
    {
        try {
            $this->ask('Browser.close', [], false);
        } catch (\RuntimeException) {
            proc_terminate($this->process, SIGKILL);
        }
        array_map(fclose(...), $this->pipes);
        proc_close($this->process);
        exec('rm -rf ' . escapeshellarg($this->profile));
    }

    /** @return array<string, mixed> */
    private function receive(): array
    {
        $deadline = microtime(true) + self::TIMEOUT_SECONDS;
        while (($end = strpos($this->received, "\0")) === false) {
            $read = [$this->pipes[4]];
            $write = $except = null;
            stream_select($read, $write, $except, 1, 0);
            $this->received .= stream_get_contents($this->pipes[4]);
            if (feof($this->pipes[4]) || microtime(true) > $deadline) {
                throw new \RuntimeException('chromium does not answer');
            }
        }
        $message = json_decode(substr($this->received, 0, $end), true, flags: JSON_THROW_ON_ERROR);
        $this->received = substr($this->received, $end + 1);

        return $message;
    }
}
