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
use Weft\Bridge\Symfony\SymfonyHandler;
use Weft\Log\StreamLogger;
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
     */
    public function __construct(private readonly HttpKernelInterface $application, private readonly \Closure $factory, private readonly RuntimeOptions $options)
    {
    }

    public function run(): int
    {
        $logger = StreamLogger::fromEnvironment();
        $options = $this->options;
        try {
            $kernels = $options->value('kernels') === null ? null : $this->integer('kernels', 1);
            $wait = Setting::seconds($options->name('kernel_wait'), $options->value('kernel_wait') ?? 5.0);
            $recycling = new Recycling(
                $this->integer('kernel_requests', 0),
                Setting::seconds($options->name('kernel_age'), $options->value('kernel_age') ?? 0.0),
                Setting::bytes($options->name('kernel_memory'), $options->value('kernel_memory') ?? 0),
            );
            // Off, as under PHP-FPM: what a request has begun is finished although its client has gone.
            $cancelOnDisconnect = Setting::boolean($options->name('cancel_on_disconnect'), $options->value('cancel_on_disconnect') ?? false);
            $options->isolate();
            $handler = SymfonyHandler::pool($this->kernel(...), $kernels, $wait, $recycling, $logger);
            $directory = (string) ($options->value('public_dir') ?? \dirname((string) \realpath((string) $_SERVER['SCRIPT_FILENAME'])));
            $site = $directory === '' ? $handler : $options->use('public_dir', static fn() => new PublicDirectory($directory, $handler));
        } catch (UsageError $refused) {
            $logger->critical('{reason}', ['reason' => $refused->getMessage()]);

            return 1;
        }
        Shared::serves($handler->stats(...));
        $app = new App($logger, $this->isDebug());
        $app->http((string) ($options->value('listen') ?? '127.0.0.1:8000'), new Limits(body: BodyLimits::ofPhp()), $cancelOnDisconnect)->fallback($site);
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
            $logger->critical('{option}: {reason}', ['option' => $options->name('listen'), 'reason' => $refused->getMessage()]);

            return 1;
        }

        return 0;
    }

    /** Without symfony/dotenv the runtime does not put it into the options. */
    private function isDebug(): bool
    {
        $given = $this->options->given;
        $variable = (string) ($given['debug_var_name'] ?? 'APP_DEBUG');

        return \filter_var($given['debug'] ?? $_SERVER[$variable] ?? false, \FILTER_VALIDATE_BOOL);
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

    private function integer(string $option, int $least): int
    {
        return Setting::integer($this->options->name($option), $this->options->value($option) ?? 0, $least);
    }
}
