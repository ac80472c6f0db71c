<?php

declare(strict_types=1);

use App\Message\Welcome;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\HttpKernel\Kernel;

return static function (ContainerConfigurator $container): void {
    $container->parameters()->set('env(APP_SECRET)', 'change me')->set('env(API_URL)', 'http://127.0.0.1:9')
        ->set('env(DATABASE_PATH)', '%kernel.project_dir%/var/app.db')->set('env(BUS_DSN)', 'sqlite:%kernel.project_dir%/var/bus.db')
        ->set('env(APP_VAR)', '%kernel.project_dir%/var')->set('env(ON_WEFT)', '1')->set('env(MAILER_DSN)', 'smtp://127.0.0.1:25');

    // Symfony 7 no longer has these options: what they switched on is how it works.
    $before7 = static fn(string $option): array => Kernel::MAJOR_VERSION < 7 ? [$option => true] : [];
    $container->extension('framework', [
        'secret' => '%env(APP_SECRET)%',
        'http_method_override' => false,
        'router' => ['utf8' => true],
        'session' => ['storage_factory_id' => 'session.storage.factory.native', 'handler_id' => 'session.handler.native_file', 'save_path' => '%env(APP_VAR)%/sessions', 'cookie_secure' => 'auto', 'cookie_samesite' => 'lax'],
        'csrf_protection' => true,
        'form' => true,
        'validation' => ['enabled' => true] + $before7('enable_annotations'),
        'mailer' => ['dsn' => '%env(MAILER_DSN)%'],
        'php_errors' => ['log' => true],
        'messenger' => ['transports' => ['jobs' => 'weft://jobs'], 'routing' => [Welcome::class => 'jobs']] + $before7('reset_on_message'),
    ]);
    $container->extension('twig', ['default_path' => '%kernel.project_dir%/templates', 'strict_variables' => true]);
    $container->extension('security', $before7('enable_authenticator_manager') + [
        'password_hashers' => [Symfony\Component\Security\Core\User\InMemoryUser::class => ['algorithm' => 'bcrypt', 'cost' => 4]],
        'providers' => ['staff' => ['memory' => ['users' => [
            // Both have the password "secret".
            'ada' => ['password' => '$2y$04$7PTZLCsRYwIHM25PfdQCXumn5Fp4tNtfQhLKOSezwhEWD03xSIKba', 'roles' => ['ROLE_USER']],
            'zoe' => ['password' => '$2y$04$7PTZLCsRYwIHM25PfdQCXumn5Fp4tNtfQhLKOSezwhEWD03xSIKba', 'roles' => ['ROLE_USER']],
        ]]]],
        'firewalls' => ['main' => [
            'lazy' => true,
            'form_login' => ['login_path' => 'login', 'check_path' => 'login', 'default_target_path' => 'customers', 'enable_csrf' => true],
            'logout' => ['path' => 'logout'],
        ]],
        'access_control' => [['path' => '^/(customers|quote)', 'roles' => 'ROLE_USER']],
    ]);
    $container->extension('weft', ['bus' => '%env(BUS_DSN)%']);
};
