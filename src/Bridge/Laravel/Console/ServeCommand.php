<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Console;

use Illuminate\Console\Command;
use Illuminate\Foundation\Application;
use Weft\App;
use Weft\Bridge\Internal\Setting;
use Weft\Bridge\Laravel\Internal\Applications;
use Weft\Cli\Internal\Interpreter;
use Weft\Http\BodyLimits;
use Weft\Http\Internal\PublicDirectory;
use Weft\Http\InvalidAddressError;
use Weft\Http\Limits;
use Weft\Http\ListenException;
use Weft\Log\StreamLogger;
use Weft\UsageError;

/**
 * `artisan weft:serve`: serves the application in supervised worker processes, each of which handles many requests at once.
 *
 * The command becomes `weft run artisan -- weft:serve --worker`, so that workers are started, restarted and reloaded as those of every
 * other program of Weft.
 */
final class ServeCommand extends Command
{
    /** @var string */
    protected $signature = 'weft:serve
        {--host= : The address to listen on [default: that of config/weft.php]}
        {--port= : The port to listen on}
        {--workers= : Worker processes, or auto: one for each CPU}
        {--applications= : Requests of a worker at the same time, each in an application of its own}
        {--max-requests= : Replace a worker after so many requests}
        {--max-memory= : Replace a worker above this memory, such as 512M}
        {--metrics= : Serve /metrics, /ready and /live on this address}
        {--pid-file= : Write the pid of the supervisor to this file}
        {--watch : Reload when a source file changes}
        {--octane : Prepare the applications by the worker of Octane, as octane:start does}
        {--worker : Serve in this process; for the supervisor}';

    /** @var string */
    protected $description = 'Serve the application with Weft, many requests at once';

    public function handle(Application $application): int
    {
        if (!\extension_loaded('weft')) {
            $this->error('The extension weft is not loaded: install it, or run php -d extension=/path/to/libweft.so artisan weft:serve (docs/guides/install.md)');

            return self::FAILURE;
        }
        if ($application->bound('encrypter') && !(bool) $application->make('config')->get('app.key')) {
            // Each application would fail when it boots, and so each request.
            $this->error('The application has no key: run `php artisan key:generate`, which writes APP_KEY to .env, or set APP_KEY in the environment');

            return self::FAILURE;
        }

        return (bool) $this->option('worker') ? $this->serve($application) : $this->supervise($application);
    }

    private function supervise(Application $application): int
    {
        $options = ['--workers=' . (string) ($this->option('workers') ?? $application->make('config')->get('weft.workers') ?? 1)];
        foreach (['max-requests', 'max-memory', 'metrics', 'pid-file'] as $name) {
            $this->option($name) === null || $options[] = "--$name=" . (string) $this->option($name);
        }
        if ((bool) $this->option('watch')) {
            // Not the whole directory: compiled views are in it.
            $directories = \array_filter(['app', 'config', 'database', 'resources', 'routes'], static fn(string $directory): bool => \is_dir($application->basePath($directory)));
            $options = [...$options, '--block-warning=0.1', ...\array_map(static fn(string $directory): string => '--watch-path=' . $application->basePath($directory), $directories)];
            \is_file($application->environmentFilePath()) && $options[] = '--watch-path=' . $application->environmentFilePath();
        }
        $arguments = ['--', 'weft:serve', '--worker', ...$this->passedOn()];
        $weft = \dirname((string) (new \ReflectionClass(App::class))->getFileName(), 2) . '/bin/weft';
        \pcntl_exec(\PHP_BINARY, [...Interpreter::options(), $weft, 'run', ...$options, $application->basePath('artisan'), ...$arguments], Interpreter::environment());
        $this->error("$weft could not be started");

        return self::FAILURE;
    }

    /** @return list<string> */
    private function passedOn(): array
    {
        $options = [];
        foreach (['host', 'port', 'applications'] as $name) {
            $this->option($name) === null || $options[] = "--$name=" . (string) $this->option($name);
        }
        (bool) $this->option('octane') && $options[] = '--octane';

        return $options;
    }

    private function serve(Application $application): int
    {
        $config = $application->make('config');
        $logger = StreamLogger::fromEnvironment();
        try {
            $size = $this->option('applications') ?? Setting::given($config->get('weft.applications'));
            $size = $size === null ? null : Setting::integer('--applications, or "applications" in config/weft.php (WEFT_APPLICATIONS),', $size, 1);
            // Off, as under PHP-FPM: what a request has begun is finished although its client has gone.
            $cancelOnDisconnect = Setting::boolean('"cancel_on_disconnect" in config/weft.php (WEFT_CANCEL_ON_DISCONNECT)', Setting::given($config->get('weft.cancel_on_disconnect')) ?? false);
            $servesFiles = Setting::boolean('"public" in config/weft.php (WEFT_PUBLIC)', Setting::given($config->get('weft.public')) ?? true);
            $applications = Applications::of($application, $size, $logger, onOctane: (bool) $this->option('octane'));
        } catch (UsageError $refused) {
            $logger->critical('{reason}', ['reason' => $refused->getMessage()]);

            return self::FAILURE;
        }
        Applications::dumpIntoResponses($application);
        // The handlers of the console's application are not for requests.
        \restore_error_handler();
        \restore_exception_handler();
        $public = $application->make('path.public');
        $app = new App($logger, (bool) $config->get('app.debug'));
        $router = $app->http($this->listen((string) (Setting::given($config->get('weft.listen')) ?? '127.0.0.1:8000')), new Limits(body: BodyLimits::ofPhp()), $cancelOnDisconnect);
        $router->fallback($servesFiles ? new PublicDirectory($public, $applications, isOptional: true) : $applications);
        try {
            $app->run();
        } catch (ListenException $refused) {
            $logger->critical('{reason}. --host and --port, or WEFT_LISTEN, name another address; `weft explain http-listen` says more', ['reason' => $refused->getMessage()]);

            return self::FAILURE;
        } catch (InvalidAddressError $refused) {
            $logger->critical('--host and --port, or WEFT_LISTEN: {reason}', ['reason' => $refused->getMessage()]);

            return self::FAILURE;
        }

        return self::SUCCESS;
    }

    private function listen(string $configured): string
    {
        [$host, $port] = [$this->option('host'), $this->option('port')];
        if ($host === null && $port === null) {
            return $configured;
        }
        $at = (int) \strrpos($configured, ':');

        return ($host ?? \substr($configured, 0, $at)) . ':' . ($port ?? \substr($configured, $at + 1));
    }
}
