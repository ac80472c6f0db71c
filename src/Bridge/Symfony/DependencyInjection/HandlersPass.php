<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\DependencyInjection;

use Symfony\Component\DependencyInjection\Compiler\CompilerPassInterface;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\Definition;
use Symfony\Component\DependencyInjection\Reference;
use Symfony\Component\Messenger\MessageBusInterface;
use Weft\Bridge\Symfony\Messenger\Dispatcher;

/** Gives the bus the services that have handlers or listeners, and the dispatcher of Messenger what it takes messages apart with. */
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
            return;
        }
        $container->setDefinition(Dispatcher::class, (new Definition(Dispatcher::class))->setPublic(true)->setArguments([
            new Reference('messenger.routable_message_bus'),
            new Reference('messenger.default_serializer'),
        ]));
    }
}
