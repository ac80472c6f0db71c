<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony;

use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\Extension\ExtensionInterface;
use Symfony\Component\HttpKernel\Bundle\Bundle;
use Weft\Bridge\Symfony\DependencyInjection\HandlersPass;
use Weft\Bridge\Symfony\DependencyInjection\SessionPass;
use Weft\Bridge\Symfony\DependencyInjection\WeftExtension;

/**
 * Makes services of Weft's database, bus and clock, registers handlers and listeners by their attributes, keeps sessions apart, and puts
 * Doctrine on Weft's pools. `docs/guides/symfony.md` has its configuration.
 */
final class WeftBundle extends Bundle
{
    public function build(ContainerBuilder $container): void
    {
        $container->addCompilerPass(new HandlersPass());
        $container->addCompilerPass(new SessionPass());
    }

    /** `services_resetter` resets only services that exist, and nothing else asks for the one of Doctrine's connections. */
    public function boot(): void
    {
        if ($this->container?->has('weft.doctrine.resetter') === true) {
            $this->container->get('weft.doctrine.resetter');
        }
    }

    public function getContainerExtension(): ExtensionInterface
    {
        return new WeftExtension();
    }
}
