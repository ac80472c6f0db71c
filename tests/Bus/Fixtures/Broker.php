<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

use function Weft\delay;

/** A RabbitMQ of its own, for tests that restart it or bring it into trouble. */
final class Broker
{
    public readonly string $url;

    private readonly string $var;

    public function __construct()
    {
        $this->var = \sys_get_temp_dir() . '/weft-broker-' . \bin2hex(\random_bytes(4));
        \mkdir($this->var, 0o755);
        // A fatal error in a test must not leave a server behind.
        \register_shutdown_function($this->remove(...));
        $this->wait($this->services('start', 'rabbitmq'));
        $environment = (string) \file_get_contents("{$this->var}/services/env");
        $this->url = \preg_match("/AMQP_URL='([^']+)'/", $environment, $match) === 1 ? $match[1] : '';
    }

    /** Stops it in order and starts it again, while other tasks go on. Call it inside `Weft\run()`. */
    public function restart(): void
    {
        $process = $this->services('restart', 'rabbitmq');
        while (\proc_get_status($process)['running']) {
            delay(0.02);
        }
        \proc_close($process);
    }

    /** @return string what rabbitmqctl says; nothing else goes on meanwhile */
    public function control(string ...$arguments): string
    {
        return $this->wait($this->services('rabbitmqctl', '-q', ...$arguments));
    }

    public function remove(): void
    {
        if (!\is_dir($this->var)) {
            return;
        }
        $this->wait($this->services('purge'));
        \unlink("{$this->var}/output");
        \rmdir($this->var);
    }

    /** @return resource */
    private function services(string ...$command)
    {
        $output = ['file', "{$this->var}/output", 'w'];
        $process = \proc_open(
            [\dirname(__DIR__, 3) . '/scripts/services', ...$command],
            [['file', '/dev/null', 'r'], $output, ['redirect', 1]],
            $pipes,
            null,
            ['WEFT_VAR' => $this->var] + \getenv(),
        );
        \assert(\is_resource($process));

        return $process;
    }

    /** @param resource $process */
    private function wait($process): string
    {
        $code = \proc_close($process);
        $output = (string) \file_get_contents("{$this->var}/output");
        if ($code !== 0) {
            throw new \RuntimeException("scripts/services ended with {$code}: {$output}");
        }

        return $output;
    }
}
