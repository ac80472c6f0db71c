<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\DependencyInjection;

use Symfony\Component\Config\Definition\Builder\TreeBuilder;
use Symfony\Component\Config\Definition\ConfigurationInterface;

/** The configuration of the bundle, `weft:`. */
final class Configuration implements ConfigurationInterface
{
    public function getConfigTreeBuilder(): TreeBuilder
    {
        $tree = new TreeBuilder('weft');
        $tree->getRootNode()
            ->children()
                ->arrayNode('database')
                    ->info('The pool behind the service Weft\Sql\Database.')
                    ->beforeNormalization()->ifString()->then(static fn(string $url): array => ['url' => $url])->end()
                    ->children()
                        ->scalarNode('url')->isRequired()->cannotBeEmpty()->info('As Database::connect() takes it: postgres://user@host/name')->end()
                        ->integerNode('pool_size')->defaultValue(20)->min(1)->info('Connections of each worker process')->end()
                    ->end()
                ->end()
                ->arrayNode('bus')
                    ->info('The service Weft\Bus\Bus, with all services that have #[CommandHandler], #[EventListener] or #[QueryHandler].')
                    ->beforeNormalization()->ifString()->then(static fn(string $url): array => ['transport' => $url])->end()
                    ->children()
                        ->scalarNode('transport')->isRequired()->cannotBeEmpty()->info('As Bus::connect() takes it: amqp://user@host, sqlite:file.db')->end()
                    ->end()
                ->end()
                ->booleanNode('doctrine')->defaultTrue()->info('Doctrine DBAL runs on Weft\'s pools')->end()
                ->booleanNode('session')->defaultTrue()->info('Sessions are kept by Weft when Weft serves the request')->end()
            ->end();

        return $tree;
    }
}
