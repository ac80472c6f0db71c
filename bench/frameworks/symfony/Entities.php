<?php

declare(strict_types=1);

namespace Weft\Bench\Frameworks\Symfony;

use App\LazyObjects;
use Doctrine\DBAL\Configuration;
use Doctrine\DBAL\DriverManager;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\ORMSetup;
use Symfony\Component\Cache\Adapter\PhpFilesAdapter;
use Symfony\Contracts\Service\ResetInterface;
use Weft\Bridge\Doctrine\Middleware;

/** The entity manager of a request, configured as for production. */
final class Entities implements ResetInterface
{
    private ?EntityManager $manager = null;

    public function __construct(private readonly string $cache) {}

    public function manager(): EntityManager
    {
        return $this->manager ??= $this->create();
    }

    /** The connection stays open where the pool is not Weft's: another process or coroutine does not have it. */
    public function reset(): void
    {
        $this->manager?->clear();
    }

    private function create(): EntityManager
    {
        $configuration = new Configuration();
        $configuration->setMiddlewares(\getenv('FRAMEWORKS_SYSTEM') === 'weft' ? [new Middleware()] : []);
        $connection = DriverManager::getConnection(['url' => (string) \getenv('DATABASE_URL')], $configuration);
        $mapping = LazyObjects::of(ORMSetup::createAttributeMetadataConfiguration([__DIR__], false, "$this->cache/proxies", new PhpFilesAdapter('doctrine', 0, $this->cache)));
        $mapping->setAutoGenerateProxyClasses(\Doctrine\ORM\Proxy\ProxyFactory::AUTOGENERATE_FILE_NOT_EXISTS);

        return new EntityManager($connection, $mapping);
    }
}
