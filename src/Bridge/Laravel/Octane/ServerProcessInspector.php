<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Octane;

use Laravel\Octane\Contracts\ServerProcessInspector as ServerProcessInspectorContract;
use Weft\Workers\Internal\Signal;

/** Tells by the file with the supervisor's pid whether Weft serves the application, and sends it signals. */
final class ServerProcessInspector implements ServerProcessInspectorContract
{
    public static function pidFile(): string
    {
        return storage_path('logs/octane-weft.pid');
    }

    public function serverIsRunning(): bool
    {
        $pid = $this->pid();

        return $pid > 0 && \posix_kill($pid, 0);
    }

    /** Replaces the workers one by one. */
    public function reloadServer(): void
    {
        $this->serverIsRunning() && \posix_kill($this->pid(), Signal::SIGHUP->value);
    }

    public function stopServer(): bool
    {
        return $this->serverIsRunning() && \posix_kill($this->pid(), Signal::SIGTERM->value);
    }

    private function pid(): int
    {
        return (int) @\file_get_contents(self::pidFile());
    }
}
