<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use Psr\Log\NullLogger;
use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Component\Config\Loader\LoaderInterface;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\HttpKernel\Kernel;
use Weft\Bridge\Symfony\WeftBundle;

/** An application that sends and handles {@see Job}s and {@see Letter}s. */
final class MessengerKernel extends Kernel
{
    public function __construct(private readonly string $directory)
    {
        parent::__construct('test', false);
    }

    /** @return iterable<\Symfony\Component\HttpKernel\Bundle\BundleInterface> */
    public function registerBundles(): iterable
    {
        return [new FrameworkBundle(), new WeftBundle()];
    }

    public function registerContainerConfiguration(LoaderInterface $loader): void
    {
        $loader->load(function (ContainerBuilder $container): void {
            $container->loadFromExtension('framework', [
                'secret' => 'x',
                'http_method_override' => false,
                'cache' => ['app' => 'cache.adapter.array'],
                'router' => ['utf8' => true, 'resource' => '.'],
                'messenger' => (self::MAJOR_VERSION < 7 ? ['reset_on_message' => true] : []) + [
                    'transports' => ['jobs' => 'weft://jobs', 'letters' => ['dsn' => '%env(MESSENGER_TEST_LETTERS)%', 'serializer' => LetterSerializer::class]],
                    'routing' => [Job::class => 'jobs', Letter::class => 'letters'],
                ],
            ]);
            $container->loadFromExtension('weft', ['bus' => '%env(MESSENGER_TEST_BUS)%']);
            $container->register(Notes::class)->setAutoconfigured(true);
            $container->register(JobHandler::class)->setAutowired(true)->setAutoconfigured(true)->addTag('messenger.message_handler');
            $container->register(LetterSerializer::class);
            $container->register(LetterHandler::class)->addTag('messenger.message_handler', ['from_transport' => 'letters']);
            // The logger of Symfony 7 writes to error_log(), which PHPUnit takes for output of the test.
            $container->register('logger', NullLogger::class);
            $container->register(WorkerEvents::class)->addTag('kernel.event_subscriber');
            $container->setAlias('test.restarts', 'cache.messenger.restart_workers_signal')->setPublic(true);
            $container->setAlias('test.bus', 'messenger.default_bus')->setPublic(true);
        });
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
}
