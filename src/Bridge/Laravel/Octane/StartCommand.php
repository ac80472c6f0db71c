<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Octane;

use Laravel\Octane\Commands\StartCommand as OctaneCommand;

/** `octane:start`, which starts Weft for `--server=weft`. */
final class StartCommand extends OctaneCommand
{
    public function handle(): int
    {
        if ($this->option('server') !== 'weft' && ($this->option('server') !== null || config('octane.server') !== 'weft')) {
            return (int) parent::handle();
        }
        $octane = $this->laravel->make('config')->get('octane');
        $options = ['--octane' => true, '--pid-file' => ServerProcessInspector::pidFile(), '--watch' => (bool) $this->option('watch')];
        foreach (['host', 'port', 'workers', 'max-requests'] as $name) {
            $value = $this->option($name) ?? $octane[$name] ?? null;
            $value === null || $options["--$name"] = (string) $value;
        }

        return $this->call('weft:serve', $options);
    }
}
