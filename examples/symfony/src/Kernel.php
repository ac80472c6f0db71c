<?php

declare(strict_types=1);

namespace App;

use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Bundle\SecurityBundle\SecurityBundle;
use Symfony\Bundle\TwigBundle\TwigBundle;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\HttpKernel\Kernel as BaseKernel;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;
use Weft\Bridge\Symfony\WeftBundle;

final class Kernel extends BaseKernel
{
    use MicroKernelTrait;

    /** @return iterable<object> */
    public function registerBundles(): iterable
    {
        return [new FrameworkBundle(), new SecurityBundle(), new TwigBundle(), new WeftBundle()];
    }

    public function getProjectDir(): string
    {
        return \dirname(__DIR__);
    }

    /** Everything that is written is in one directory, which the tests choose. */
    public function getCacheDir(): string
    {
        return (\getenv('APP_VAR') ?: $this->getProjectDir() . '/var') . "/cache/{$this->environment}";
    }

    public function getLogDir(): string
    {
        return (\getenv('APP_VAR') ?: $this->getProjectDir() . '/var') . '/log';
    }

    protected function configureContainer(ContainerConfigurator $container): void
    {
        $container->import('../config/*.php');
    }

    protected function configureRoutes(RoutingConfigurator $routes): void
    {
        // Symfony 5.4 has the attribute by its old name only, and Symfony 8 by its new one only.
        \class_exists(\Symfony\Component\Routing\Attribute\Route::class) || \class_alias('Symfony\Component\Routing\Annotation\Route', \Symfony\Component\Routing\Attribute\Route::class);
        // Symfony 7 knows only the new name of the attributes, and before 6.2 only the old one is known.
        $routes->import('../src/Controller/', self::MAJOR_VERSION < 7 ? 'annotation' : 'attribute');
        $routes->add('logout', '/logout');
    }
}
