<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

/**
 * Reports the state of the service to systemd if `NOTIFY_SOCKET` is set; see sd_notify(3).
 *
 * @internal
 */
final class SystemdNotifier
{
    /** @var resource|null */
    private readonly mixed $socket;
    /** Seconds between two keep-alive messages; null if the watchdog is off. */
    private readonly ?float $every;
    private float $lastKeepAlive = 0.0;

    public function __construct()
    {
        $address = (string) \getenv('NOTIFY_SOCKET');
        $microseconds = (int) \getenv('WATCHDOG_USEC');
        $path = \str_starts_with($address, '@') ? "\0" . \substr($address, 1) : $address;
        $this->socket = $address === '' ? null : (@\stream_socket_client("udg://$path") ?: null);
        $this->every = $microseconds > 0 ? $microseconds / 2e6 : null;
        // Workers must not talk to systemd in the supervisor's name.
        \putenv('NOTIFY_SOCKET');
        \putenv('WATCHDOG_USEC');
        \putenv('WATCHDOG_PID');
    }

    public function ready(): void
    {
        $this->send("READY=1\nMAINPID=" . (string) \getmypid());
    }

    public function reloading(): void
    {
        $this->send("RELOADING=1\nMONOTONIC_USEC=" . \intdiv((int) \hrtime(true), 1000));
    }

    public function stopping(): void
    {
        $this->send('STOPPING=1');
    }

    public function status(string $text): void
    {
        $this->send("STATUS=$text");
    }

    /** Call this in every turn of the loop. */
    public function keepAlive(float $now): void
    {
        if ($this->every !== null && $now - $this->lastKeepAlive >= $this->every) {
            $this->lastKeepAlive = $now;
            $this->send('WATCHDOG=1');
        }
    }

    private function send(string $text): void
    {
        if ($this->socket !== null) {
            @\fwrite($this->socket, $text);
        }
    }
}
