<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Octane;

use Laravel\Octane\Commands\StopCommand as OctaneCommand;

/** `octane:stop`, which stops Weft for `--server=weft`. */
final class StopCommand extends OctaneCommand
{
    public function handle(): int
    {
        if ($this->option('server') !== 'weft' && ($this->option('server') !== null || config('octane.server') !== 'weft')) {
            return (int) parent::handle();
        }
        if (!(new ServerProcessInspector())->stopServer()) {
            $this->error('Weft is not running.');

            return self::FAILURE;
        }
        $this->info('Weft stops.');

        return self::SUCCESS;
    }
}
