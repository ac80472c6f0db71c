<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use Psr\Log\NullLogger;
use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Component\Config\Loader\LoaderInterface;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Kernel;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;
use Weft\Bridge\Symfony\WeftBundle;

/** An application whose pages are functions, with sessions. */
final class PageKernel extends Kernel
{
    use \Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;

    /**
     * @param array<string, \Closure(Request, self): Response> $pages by path
     * @param array<string, mixed> $framework configuration
     * @param (\Closure(): mixed)|null $booting runs when the kernel boots
     */
    public function __construct(private readonly string $directory, private readonly array $pages, private readonly array $framework = [], private readonly ?\Closure $booting = null)
    {
        parent::__construct('test', false);
    }

    public function boot(): void
    {
        if (!$this->booted && $this->booting !== null) {
            ($this->booting)();
        }
        parent::boot();
    }

    /** @return iterable<\Symfony\Component\HttpKernel\Bundle\BundleInterface> */
    public function registerBundles(): iterable
    {
        return [new FrameworkBundle(), new WeftBundle()];
    }

    public function registerContainerConfiguration(LoaderInterface $loader): void
    {
        $loader->load(function (ContainerBuilder $container): void {
            $framework = $this->framework;
            $framework['session'] = ($framework['session'] ?? []) + [
                'storage_factory_id' => 'session.storage.factory.native',
                'save_path' => "$this->directory/sessions",
                'gc_probability' => 0,
            ];
            $container->loadFromExtension('framework', $framework + [
                'secret' => 'x',
                'http_method_override' => false,
                'router' => ['utf8' => true, 'resource' => 'kernel::loadRoutes', 'type' => 'service'],
            ]);
            $container->loadFromExtension('weft', []);
            $container->register('kernel', self::class)->setSynthetic(true)->setPublic(true)->addTag('routing.route_loader')->addTag('controller.service_arguments');
            $container->register(Held::class)->setArguments(["$this->directory/held"])->setPublic(true)->addTag('kernel.reset', ['method' => 'reset']);
            $container->register('logger', NullLogger::class);
        });
    }

    protected function configureRoutes(RoutingConfigurator $routes): void
    {
        foreach (\array_keys($this->pages) as $path) {
            $routes->add(\trim($path, '/'), $path)->controller('kernel::page');
        }
    }

    public function page(Request $request): Response
    {
        return $this->pages[$request->getPathInfo()]($request, $this);
    }

    public function getProjectDir(): string
    {
        return $this->directory;
    }

    public function getCacheDir(): string
    {
        return "$this->directory/cache";
    }

    public function getLogDir(): string
    {
        return "$this->directory/log";
    }
}
