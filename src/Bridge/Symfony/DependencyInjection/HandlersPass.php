<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\DependencyInjection;

use Symfony\Component\DependencyInjection\Compiler\CompilerPassInterface;
use Symfony\Component\DependencyInjection\Compiler\ServiceLocatorTagPass;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\ContainerInterface;
use Symfony\Component\DependencyInjection\Definition;
use Symfony\Component\DependencyInjection\Reference;
use Symfony\Component\Messenger\MessageBusInterface;
use Weft\Bridge\Symfony\Command\ConsumeMessagesCommand;
use Weft\Bridge\Symfony\Messenger\Dispatcher;
use Weft\Bridge\Symfony\Messenger\Transports;

/** Gives the bus the services that have handlers or listeners, and the consumer of Messenger the transports of its configuration. */
final class HandlersPass implements CompilerPassInterface
{
    public function process(ContainerBuilder $container): void
    {
        if (!$container->hasDefinition('weft.bus.consumer')) {
            return;
        }
        $handlers = \array_keys($container->findTaggedServiceIds('weft.handler'));
        $container->getDefinition('weft.bus.consumer')->setArguments([\array_map(static fn(string $id): Reference => new Reference($id), $handlers)]);
        if (!\interface_exists(MessageBusInterface::class) || !$container->has('messenger.routable_message_bus')) {
            $container->removeDefinition(ConsumeMessagesCommand::class);

            return;
        }
        $container->setDefinition(Transports::class, (new Definition(Transports::class))->setArguments(self::transports($container)));
        $container->getDefinition(ConsumeMessagesCommand::class)
            ->addArgument(new Reference(Transports::class))
            ->addArgument(new Reference('cache.messenger.restart_workers_signal', ContainerInterface::NULL_ON_INVALID_REFERENCE));
        $container->setDefinition(Dispatcher::class, (new Definition(Dispatcher::class))->setPublic(true)->setArguments([
            new Reference('messenger.routable_message_bus'),
            new Reference(Transports::class),
            new Reference('event_dispatcher', ContainerInterface::NULL_ON_INVALID_REFERENCE),
        ]));
    }

    /**
     * DSNs, which may be known at run time only, and serializers of the transports in the configuration of Messenger.
     *
     * @return array{array<string, string>, Reference}
     */
    private static function transports(ContainerBuilder $container): array
    {
        $dsns = $serializers = [];
        foreach ($container->findTaggedServiceIds('messenger.receiver') as $id => $tags) {
            [$dsn, , $serializer] = \array_values($container->getDefinition($id)->getArguments()) + [null, null, null];
            // Receivers that are no transports have arguments of their own.
            if (\is_string($dsn) && $serializer instanceof Reference) {
                $name = (string) ($tags[0]['alias'] ?? $id);
                [$dsns[$name], $serializers[$name]] = [$dsn, $serializer];
            }
        }

        return [$dsns, ServiceLocatorTagPass::register($container, $serializers)];
    }
}
