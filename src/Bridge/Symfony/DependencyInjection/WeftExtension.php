<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\DependencyInjection;

use Doctrine\DBAL\Driver\Middleware as DbalMiddleware;
use Symfony\Component\DependencyInjection\ChildDefinition;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\ContainerInterface;
use Symfony\Component\DependencyInjection\Extension\Extension;
use Symfony\Component\DependencyInjection\Reference;
use Symfony\Component\Messenger\Transport\TransportFactoryInterface;
use Weft\Bridge\Doctrine\Middleware;
use Weft\Bridge\Symfony\Command\ConsumeCommand;
use Weft\Bridge\Symfony\Command\ConsumeMessagesCommand;
use Weft\Bridge\Symfony\Command\SetupCommand;
use Weft\Bridge\Symfony\Internal\BusFactory;
use Weft\Bridge\Symfony\Internal\DoctrineResetter;
use Weft\Bridge\Symfony\Internal\Shared;
use Weft\Bridge\Symfony\Messenger\TransportFactory;
use Weft\Bridge\Symfony\Profiler\HealthCollector;
use Weft\Bus\Bus;
use Weft\Bus\CommandHandler;
use Weft\Bus\EventListener;
use Weft\Bus\QueryHandler;
use Weft\Sql\Database;

/** Turns the configuration into services. */
final class WeftExtension extends Extension
{
    public function getAlias(): string
    {
        return 'weft';
    }

    public function load(array $configs, ContainerBuilder $container): void
    {
        /** @var array{database?: array{url: string, pool_size: int}, bus?: array{transport: string}, doctrine: bool, session: bool} $config */
        $config = $this->processConfiguration(new Configuration(), $configs);
        $container->setParameter('weft.session', $config['session']);
        if (isset($config['database'])) {
            $container->register(Database::class)->setFactory([Shared::class, 'database'])->setPublic(true)
                ->setArguments([$config['database']['url'], $config['database']['pool_size']]);
        }
        if (isset($config['bus'])) {
            $this->bus($config['bus']['transport'], isset($config['database']), $container);
        }
        // The profiler of FrameworkBundle takes what has this tag; without it nothing does.
        $container->register(HealthCollector::class)->addTag('data_collector', ['template' => '@Weft/health.html.twig', 'id' => 'weft', 'priority' => 200]);
        if ($config['doctrine'] && \interface_exists(DbalMiddleware::class)) {
            // Before every other middleware: theirs wrap the driver that is used.
            $container->register('weft.doctrine.middleware', Middleware::class)->addTag('doctrine.middleware', ['priority' => 1_000]);
            $container->register('weft.doctrine.resetter', DoctrineResetter::class)
                ->setArguments([new Reference('doctrine', ContainerInterface::NULL_ON_INVALID_REFERENCE), new Reference('service_container')])
                ->addTag('kernel.reset', ['method' => 'reset'])->setPublic(true);
        }
    }

    private function bus(string $transport, bool $hasDatabase, ContainerBuilder $container): void
    {
        foreach ([CommandHandler::class, EventListener::class, QueryHandler::class] as $attribute) {
            $container->registerAttributeForAutoconfiguration($attribute, static function (ChildDefinition $definition, object $attribute, \ReflectionMethod $method): void {
                $definition->addTag('weft.handler');
            });
        }
        $database = $hasDatabase ? new Reference(Database::class) : null;
        $container->register(BusFactory::class)
            ->setArguments([$transport, $database, new Reference('logger', ContainerInterface::NULL_ON_INVALID_REFERENCE)]);
        $container->register(Bus::class)->setFactory([new Reference(BusFactory::class), 'create'])->setPublic(true);
        // Apart from the one that is injected: a handler may send by it.
        $container->register('weft.bus.consumer', Bus::class)->setFactory([new Reference(BusFactory::class), 'create']);
        foreach ([ConsumeCommand::class, SetupCommand::class] as $command) {
            $container->register($command)->setArguments([new Reference('weft.bus.consumer')])->addTag('console.command');
        }
        if (\interface_exists(TransportFactoryInterface::class)) {
            $container->register(TransportFactory::class)->setArguments([new Reference(Bus::class), new Reference(BusFactory::class)])->addTag('messenger.transport_factory');
            $container->register(ConsumeMessagesCommand::class)->addTag('console.command')
                ->setArguments([new Reference(BusFactory::class), new Reference('kernel'), new Reference('logger', ContainerInterface::NULL_ON_INVALID_REFERENCE)]);
        }
    }
}
