<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Octane;

use Laravel\Octane\Commands\StatusCommand as OctaneCommand;

/** `octane:status`, which tells whether Weft runs for `--server=weft`. */
final class StatusCommand extends OctaneCommand
{
    public function handle(): int
    {
        if ($this->option('server') !== 'weft' && ($this->option('server') !== null || config('octane.server') !== 'weft')) {
            return (int) parent::handle();
        }
        $isRunning = (new ServerProcessInspector())->serverIsRunning();
        $isRunning ? $this->info('Weft is running.') : $this->error('Weft is not running.');

        return $isRunning ? self::SUCCESS : self::FAILURE;
    }
}
