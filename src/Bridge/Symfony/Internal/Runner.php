<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Internal;

use Symfony\Component\HttpKernel\HttpKernelInterface;
use Symfony\Component\HttpKernel\KernelInterface;
use Symfony\Component\Runtime\RunnerInterface;
use Weft\App;
use Weft\Bridge\Internal\Setting;
use Weft\Bridge\Symfony\WeftBundle;
use Weft\Http\ApplicationPool;
use Weft\Http\BodyLimits;
use Weft\Http\Internal\PublicDirectory;
use Weft\Http\InvalidAddressError;
use Weft\Http\Limits;
use Weft\Http\ListenException;
use Weft\Http\Recycling;
use Weft\Http\SymfonyHandler;
use Weft\Log\StreamLogger;
use Weft\Runtime\Realm;
use Weft\UsageError;

/**
 * Serves an application until the process receives a signal to stop.
 *
 * @internal
 */
final class Runner implements RunnerInterface
{
    /**
     * @param HttpKernelInterface $application that the runtime has made; requests are served by others
     * @param \Closure(): ?object $factory makes the application, in the realm of each kernel
     * @param array<string, mixed> $options of the runtime
     */
    public function __construct(private readonly HttpKernelInterface $application, private readonly \Closure $factory, private readonly array $options)
    {
    }

    public function run(): int
    {
        $logger = StreamLogger::fromEnvironment();
        try {
            $kernels = $this->option('kernels') === null ? null : $this->integer('kernels', 1);
            $wait = Setting::seconds($this->name('kernel_wait'), $this->option('kernel_wait') ?? 5.0);
            $recycling = new Recycling(
                $this->integer('kernel_requests', 0),
                Setting::seconds($this->name('kernel_age'), $this->option('kernel_age') ?? 0.0),
                Setting::bytes($this->name('kernel_memory'), $this->option('kernel_memory') ?? 0),
            );
            // Off, as under PHP-FPM: what a request has begun is finished although its client has gone.
            $cancelOnDisconnect = Setting::boolean($this->name('cancel_on_disconnect'), $this->option('cancel_on_disconnect') ?? false);
            $this->use('isolate', fn() => Realm::isolate(...$this->isolated()));
            $handler = SymfonyHandler::pool($this->kernel(...), $kernels, $wait, $recycling, $logger);
            $directory = (string) ($this->option('public_dir') ?? \dirname((string) \realpath((string) $_SERVER['SCRIPT_FILENAME'])));
            $site = $directory === '' ? $handler : $this->use('public_dir', static fn() => new PublicDirectory($directory, $handler));
        } catch (UsageError $refused) {
            $logger->critical($refused->getMessage());

            return 1;
        }
        Shared::serves($handler->stats(...));
        $app = new App($logger, $this->isDebug());
        $app->http((string) ($this->option('listen') ?? '127.0.0.1:8000'), new Limits(body: BodyLimits::ofPhp()), $cancelOnDisconnect)->fallback($site);
        $logger->info('Symfony in {kernels} kernels, booted when they are needed', ['kernels' => $kernels ?? 'up to ' . ApplicationPool::MOST_INSTANCES]);
        if ($this->application instanceof KernelInterface && !self::hasBundle($this->application)) {
            $logger->info(
                'WeftBundle is not registered: there are no commands and no configuration "weft", and Doctrine keeps its own connections. '
                    . 'config/bundles.php registers it: {bundle}::class => ["all" => true]',
                ['bundle' => WeftBundle::class],
            );
        }
        try {
            $app->run();
        } catch (ListenException $refused) {
            $logger->critical('{reason}. WEFT_LISTEN, or "listen" in extra.runtime of composer.json, names another address; `weft explain http-listen` says more', ['reason' => $refused->getMessage()]);

            return 1;
        } catch (InvalidAddressError $refused) {
            $logger->critical('{option}: {reason}', ['option' => $this->name('listen'), 'reason' => $refused->getMessage()]);

            return 1;
        }

        return 0;
    }

    /** Without symfony/dotenv the runtime does not put it into the options. */
    private function isDebug(): bool
    {
        $variable = (string) ($this->options['debug_var_name'] ?? 'APP_DEBUG');

        return \filter_var($this->options['debug'] ?? $_SERVER[$variable] ?? false, \FILTER_VALIDATE_BOOL);
    }

    private static function hasBundle(KernelInterface $kernel): bool
    {
        foreach ($kernel->registerBundles() as $bundle) {
            if ($bundle instanceof WeftBundle) {
                return true;
            }
        }

        return false;
    }

    private function kernel(): HttpKernelInterface
    {
        $kernel = ($this->factory)();
        if (!$kernel instanceof HttpKernelInterface) {
            throw new \Error('The function of the front controller returned ' . \get_debug_type($kernel) . ', and a kernel when it was called first');
        }

        return $kernel;
    }

    /** @return list<string> */
    private function isolated(): array
    {
        $properties = $this->option('isolate') ?? [];

        return \is_array($properties) ? \array_values(\array_map(\strval(...), $properties)) : \array_values(\array_filter(\explode(',', (string) $properties)));
    }

    private function integer(string $option, int $least): int
    {
        return Setting::integer($this->name($option), $this->option($option) ?? 0, $least);
    }

    /**
     * @template R
     *
     * @param \Closure(): R $use uses the option
     *
     * @return R
     *
     * @throws UsageError that names the option
     */
    private function use(string $option, \Closure $use): mixed
    {
        try {
            return $use();
        } catch (\Error $refused) {
            throw new UsageError("{$this->name($option)}: {$refused->getMessage()}", previous: $refused);
        }
    }

    private function option(string $name): mixed
    {
        return self::variable($name) ?? $this->options[$name] ?? null;
    }

    /** Where an option has its value from, for messages. */
    private function name(string $option): string
    {
        return self::variable($option) === null ? "\"$option\" in extra.runtime of composer.json" : 'WEFT_' . \strtoupper($option);
    }

    private static function variable(string $option): mixed
    {
        $variable = 'WEFT_' . \strtoupper($option);
        $given = $_SERVER[$variable] ?? $_ENV[$variable] ?? \getenv($variable);

        // An empty directory serves no files; of all others it is the default.
        return $given === false || $given === '' && $option !== 'public_dir' ? null : $given;
    }
}
