<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Internal;

use Illuminate\Contracts\Foundation\Application;
use Weft\Bridge\Laravel\Octane as Commands;

/**
 * Octane's commands know their servers by name; where Octane is installed, these know Weft too.
 *
 * @internal
 */
final class Octane
{
    private const COMMANDS = [
        'Laravel\Octane\Commands\StartCommand' => Commands\StartCommand::class,
        'Laravel\Octane\Commands\StopCommand' => Commands\StopCommand::class,
        'Laravel\Octane\Commands\ReloadCommand' => Commands\ReloadCommand::class,
        'Laravel\Octane\Commands\StatusCommand' => Commands\StatusCommand::class,
    ];

    public static function register(Application $application): void
    {
        foreach (self::COMMANDS as $theirs => $ours) {
            $application->bind($theirs, $ours);
        }
    }
}
