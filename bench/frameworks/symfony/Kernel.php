<?php

declare(strict_types=1);

namespace Weft\Bench\Frameworks\Symfony;

use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Bundle\TwigBundle\TwigBundle;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\HttpKernel\Kernel as BaseKernel;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;

/** The application that all systems serve. */
final class Kernel extends BaseKernel
{
    use MicroKernelTrait;

    /** @return iterable<object> */
    public function registerBundles(): iterable
    {
        return [new FrameworkBundle(), new TwigBundle()];
    }

    public function getProjectDir(): string
    {
        return __DIR__;
    }

    public function getCacheDir(): string
    {
        return \getenv('FRAMEWORKS_VAR') . '/symfony';
    }

    public function getLogDir(): string
    {
        return \getenv('FRAMEWORKS_VAR') . '/log';
    }

    protected function configureContainer(ContainerConfigurator $container): void
    {
        $container->extension('framework', ['secret' => 'bench', 'http_method_override' => false, 'router' => ['utf8' => true], 'http_client' => true]);
        $container->extension('twig', ['default_path' => '%kernel.project_dir%/templates']);
        $services = $container->services()->defaults()->autowire()->autoconfigure();
        $services->set(Entities::class)->args(['%kernel.cache_dir%/doctrine']);
        $services->set(PageController::class)->tag('controller.service_arguments');
    }

    protected function configureRoutes(RoutingConfigurator $routes): void
    {
        $routes->add('page', '/page')->controller([PageController::class, 'page']);
        $routes->add('compute', '/compute')->controller([PageController::class, 'compute']);
    }
}
