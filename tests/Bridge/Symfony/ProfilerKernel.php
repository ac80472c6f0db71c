<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Bundle\TwigBundle\TwigBundle;
use Symfony\Bundle\WebProfilerBundle\WebProfilerBundle;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Kernel;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;
use Weft\Bridge\Symfony\WeftBundle;
use Weft\Sql\Database;

/** An application with Symfony's profiler. */
final class ProfilerKernel extends Kernel
{
    use MicroKernelTrait;

    public function __construct(private readonly string $directory)
    {
        parent::__construct('test', false);
    }

    /** @return iterable<\Symfony\Component\HttpKernel\Bundle\BundleInterface> */
    public function registerBundles(): iterable
    {
        return [new FrameworkBundle(), new TwigBundle(), new WebProfilerBundle(), new WeftBundle()];
    }

    /** Sends a message, and has the pool of connections. */
    public function page(): Response
    {
        \assert($this->container !== null);
        $this->container->get(Database::class);
        /** @var MessageBusInterface $messages */
        $messages = $this->container->get('test.bus');
        $messages->dispatch(new Job('profiled'));

        return new Response('page');
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
        return $this->directory;
    }

    protected function configureContainer(ContainerConfigurator $container): void
    {
        $container->extension('framework', [
            'secret' => 'x',
            'test' => true,
            'http_method_override' => false,
            'router' => ['utf8' => true],
            'profiler' => ['collect' => true],
            'messenger' => ['transports' => ['profiled' => 'weft://profiled'], 'routing' => [Job::class => 'profiled']],
        ]);
        $container->extension('weft', ['bus' => "sqlite:$this->directory/bus.db", 'database' => ['url' => (string) \getenv('DATABASE_URL'), 'pool_size' => 7]]);
        $container->services()->alias('test.bus', 'messenger.default_bus')->public();
    }

    protected function configureRoutes(RoutingConfigurator $routes): void
    {
        $format = self::VERSION_ID >= 70_300 ? 'php' : 'xml';
        $routes->import("@WebProfilerBundle/Resources/config/routing/wdt.$format")->prefix('/_wdt');
        $routes->import("@WebProfilerBundle/Resources/config/routing/profiler.$format")->prefix('/_profiler');
        $routes->add('page', '/page')->controller('kernel::page');
    }
}
