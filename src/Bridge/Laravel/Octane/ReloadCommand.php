<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Octane;

use Laravel\Octane\Commands\ReloadCommand as OctaneCommand;

/** `octane:reload`, which reloads Weft for `--server=weft`. */
final class ReloadCommand extends OctaneCommand
{
    public function handle(): int
    {
        if ($this->option('server') !== 'weft' && ($this->option('server') !== null || config('octane.server') !== 'weft')) {
            return (int) parent::handle();
        }
        $inspector = new ServerProcessInspector();
        if (!$inspector->serverIsRunning()) {
            $this->error('Weft is not running.');

            return self::FAILURE;
        }
        $inspector->reloadServer();
        $this->info('Weft reloads its workers.');

        return self::SUCCESS;
    }
}
