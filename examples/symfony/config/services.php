<?php

declare(strict_types=1);

use App\Entities;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;

return static function (ContainerConfigurator $container): void {
    $services = $container->services()->defaults()->autowire()->autoconfigure()->bind('string $api', '%env(API_URL)%');
    $services->load('App\\', '../src/')->exclude(['../src/Kernel.php', '../src/Entity/', '../src/Message/Welcome.php']);
    $services->set(Entities::class)->args(['%env(DATABASE_PATH)%', '%env(bool:ON_WEFT)%', '%kernel.cache_dir%/doctrine']);
};
