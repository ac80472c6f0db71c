<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Internal;

use Symfony\Component\HttpKernel\HttpKernelInterface;
use Symfony\Component\Runtime\RunnerInterface;
use Weft\App;
use Weft\Http\Recycling;
use Weft\Http\SymfonyHandler;
use Weft\Log\StreamLogger;

/**
 * Serves an application until the process receives a signal to stop.
 *
 * @internal
 */
final class Runner implements RunnerInterface
{
    private const MOST_KERNELS = 32;

    /** Half of the memory limit is for kernels, each with what its requests load. */
    private const BYTES_OF_A_KERNEL = 4 << 20;

    private ?HttpKernelInterface $first;

    /**
     * @param \Closure(): ?object $factory makes the application again
     * @param array<string, mixed> $options of the runtime
     */
    public function __construct(HttpKernelInterface $first, private readonly \Closure $factory, private readonly array $options)
    {
        $this->first = $first;
    }

    public function run(): int
    {
        $logger = StreamLogger::fromEnvironment();
        $kernels = (int) ($this->option('kernels') ?? self::kernels());
        $recycling = new Recycling((int) $this->option('kernel_requests'), (float) $this->option('kernel_age'), (int) $this->option('kernel_memory'));
        $handler = SymfonyHandler::pool($this->kernel(...), $kernels, (float) ($this->option('kernel_wait') ?? 5.0), $recycling, $logger);
        $app = new App($logger, (bool) ($this->options['debug'] ?? false));
        $folder = (string) ($this->option('public_dir') ?? \dirname((string) \realpath((string) $_SERVER['SCRIPT_FILENAME'])));
        $router = $app->http((string) ($this->option('listen') ?? '127.0.0.1:8000'));
        $router->fallback($folder === '' ? $handler : new PublicFolder($folder, $handler));
        $logger->info('Symfony in {kernels} kernels, made when they are needed', ['kernels' => $kernels]);
        $app->run();

        return 0;
    }

    private function kernel(): HttpKernelInterface
    {
        $kernel = $this->first ?? ($this->factory)();
        $this->first = null;
        if (!$kernel instanceof HttpKernelInterface) {
            throw new \Error('The function of the front controller returned ' . \get_debug_type($kernel) . ', and a kernel when it was called first');
        }

        return $kernel;
    }

    private function option(string $name): mixed
    {
        $variable = 'WEFT_' . \strtoupper($name);
        $given = $_SERVER[$variable] ?? $_ENV[$variable] ?? \getenv($variable);

        return $given === false ? $this->options[$name] ?? null : $given;
    }

    private static function kernels(): int
    {
        $limit = \ini_parse_quantity((string) \ini_get('memory_limit'));

        return $limit <= 0 ? self::MOST_KERNELS : \max(1, \min(self::MOST_KERNELS, \intdiv($limit, 2 * self::BYTES_OF_A_KERNEL)));
    }
}
