<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\DependencyInjection;

use Symfony\Component\DependencyInjection\Compiler\CompilerPassInterface;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\Definition;
use Symfony\Component\DependencyInjection\Reference;
use Weft\Bridge\Symfony\Session\FileHandler;
use Weft\Bridge\Symfony\Session\StorageFactory;

/**
 * Keeps the sessions of PHP's own storage by Weft where Weft serves the request. A handler that the application has chosen
 * (`framework.session.handler_id`) stays; PHP's own for files works with PHP's own sessions only.
 */
final class SessionPass implements CompilerPassInterface
{
    private const NATIVE = 'session.storage.factory.native';

    public function process(ContainerBuilder $container): void
    {
        if ($container->getParameter('weft.session') !== true || !$container->hasDefinition(self::NATIVE)) {
            return;
        }
        /** @var array<string, mixed> $options */
        $options = $container->hasParameter('session.storage.options') ? $container->getParameter('session.storage.options') : [];
        $handler = $container->hasAlias('session.handler') ? (string) $container->getAlias('session.handler') : 'session.handler';
        $isOwn = $container->has($handler) && !\in_array($handler, ['session.handler', 'session.handler.native', 'session.handler.native_file'], true);
        if (!$isOwn) {
            $isSet = $container->hasParameter('session.save_path') && $container->getParameter('session.save_path') !== null;
            $container->setDefinition('weft.session.handler', new Definition(FileHandler::class, [$isSet ? '%session.save_path%' : '%kernel.cache_dir%/sessions']));
            $handler = 'weft.session.handler';
        }
        $container->setDefinition('weft.session.storage.factory', new Definition(StorageFactory::class, [
            new Reference('weft.session.storage.factory.inner'),
            new Reference($handler),
            $options,
            // With `framework.session.metadata_update_threshold`.
            $container->getDefinition(self::NATIVE)->getArguments()[2] ?? null,
        ]))->setDecoratedService(self::NATIVE)->addTag('kernel.reset', ['method' => 'reset'])
            // Before all others, which may stop the event.
            ->addTag('kernel.event_listener', ['event' => 'kernel.exception', 'method' => 'fail', 'priority' => \PHP_INT_MAX]);
    }
}
