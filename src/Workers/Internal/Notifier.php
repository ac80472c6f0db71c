<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

/**
 * Tells systemd about the life of the service, sd_notify(3), where it has asked for that.
 *
 * @internal
 */
final class Notifier
{
    /** @var resource|null */
    private readonly mixed $socket;
    /** Seconds between two signs of life, null where none are wanted. */
    private readonly ?float $every;
    private float $lastSign = 0.0;

    public function __construct()
    {
        $address = (string) \getenv('NOTIFY_SOCKET');
        $microseconds = (int) \getenv('WATCHDOG_USEC');
        $path = \str_starts_with($address, '@') ? "\0" . \substr($address, 1) : $address;
        $this->socket = $address === '' ? null : (@\stream_socket_client("udg://$path") ?: null);
        $this->every = $microseconds > 0 ? $microseconds / 2e6 : null;
        // What is the supervisor's must not be said by a worker.
        \putenv('NOTIFY_SOCKET');
        \putenv('WATCHDOG_USEC');
        \putenv('WATCHDOG_PID');
    }

    public function ready(): void
    {
        $this->say("READY=1\nMAINPID=" . (string) \getmypid());
    }

    public function reloading(): void
    {
        $this->say("RELOADING=1\nMONOTONIC_USEC=" . \intdiv((int) \hrtime(true), 1000));
    }

    public function stopping(): void
    {
        $this->say('STOPPING=1');
    }

    public function status(string $text): void
    {
        $this->say("STATUS=$text");
    }

    /** To be called with every turn of the loop. */
    public function alive(float $now): void
    {
        if ($this->every !== null && $now - $this->lastSign >= $this->every) {
            $this->lastSign = $now;
            $this->say('WATCHDOG=1');
        }
    }

    private function say(string $text): void
    {
        if ($this->socket !== null) {
            @\fwrite($this->socket, $text);
        }
    }
}
