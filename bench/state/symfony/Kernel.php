<?php

declare(strict_types=1);

namespace Weft\Bench\State\Symfony;

use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Bundle\SecurityBundle\SecurityBundle;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\HttpKernel\Kernel as BaseKernel;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;
use Symfony\Component\Security\Core\User\InMemoryUser;
use Weft\Bridge\Symfony\WeftBundle;

/** An application with everything that can be mixed up: users, sessions, translations, Doctrine. */
final class Kernel extends BaseKernel
{
    use MicroKernelTrait;

    private const USERS = 64;

    /** @return iterable<object> */
    public function registerBundles(): iterable
    {
        return [new FrameworkBundle(), new SecurityBundle(), new WeftBundle()];
    }

    public function getProjectDir(): string
    {
        return __DIR__;
    }

    public function getCacheDir(): string
    {
        return \getenv('STATE_VAR') . '/cache';
    }

    public function getLogDir(): string
    {
        return \getenv('STATE_VAR') . '/log';
    }

    protected function configureContainer(ContainerConfigurator $container): void
    {
        $users = [];
        for ($number = 0; $number < self::USERS; $number++) {
            $users["user$number"] = ['password' => 'secret', 'roles' => ['ROLE_USER']];
        }
        $container->extension('framework', [
            'secret' => 'state',
            'http_method_override' => false,
            'router' => ['utf8' => true],
            'translator' => ['default_path' => '%kernel.project_dir%/translations', 'fallbacks' => ['en']],
            'session' => ['storage_factory_id' => 'session.storage.factory.native', 'handler_id' => 'session.handler.native_file', 'save_path' => \getenv('STATE_VAR') . '/sessions'],
        ]);
        // Symfony 7 no longer has the option.
        $container->extension('security', (self::MAJOR_VERSION < 7 ? ['enable_authenticator_manager' => true] : []) + [
            'password_hashers' => [InMemoryUser::class => 'plaintext'],
            'providers' => ['users' => ['memory' => ['users' => $users]]],
            'firewalls' => ['main' => ['http_basic' => true]],
            'access_control' => [['path' => '^/', 'roles' => 'ROLE_USER']],
        ]);
        // Sessions of PHP itself: the realm keeps them apart.
        $container->extension('weft', ['session' => false]);
        $services = $container->services()->defaults()->autowire()->autoconfigure();
        $services->set(Entities::class)->args([\getenv('STATE_DATABASE'), '%kernel.cache_dir%/doctrine']);
        $services->set(StateController::class)->tag('controller.service_arguments');
    }

    protected function configureRoutes(RoutingConfigurator $routes): void
    {
        $routes->add('state', '/state')->controller(StateController::class);
    }
}
