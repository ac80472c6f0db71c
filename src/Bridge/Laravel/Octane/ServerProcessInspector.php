<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Octane;

use Laravel\Octane\Contracts\ServerProcessInspector as ServerProcessInspectorContract;
use Weft\Workers\Internal\PidFile;
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
        return PidFile::holder(self::pidFile()) !== null;
    }

    /** Replaces the workers one by one. */
    public function reloadServer(): void
    {
        self::signal(Signal::SIGHUP);
    }

    public function stopServer(): bool
    {
        return self::signal(Signal::SIGTERM);
    }

    /** Whether there is a server of this user. */
    private static function signal(Signal $signal): bool
    {
        $pid = PidFile::holder(self::pidFile());

        return $pid !== null && \posix_kill($pid, $signal->value);
    }
}
