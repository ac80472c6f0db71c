<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Session;

use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Session\Storage\MetadataBag;
use Symfony\Component\HttpFoundation\Session\Storage\SessionStorageFactoryInterface;
use Symfony\Component\HttpFoundation\Session\Storage\SessionStorageInterface;
use Symfony\Contracts\Service\ResetInterface;

use function Weft\current;

/** Makes the storage of a request's session: Weft's own in a task, the configured one on other servers. */
final class StorageFactory implements SessionStorageFactoryInterface, ResetInterface
{
    /** @var \WeakMap<Storage, true> those that are in use */
    private \WeakMap $made;

    /**
     * @param array<string, mixed> $options as of the session in the configuration of the framework
     * @param MetadataBag|null $metadata times of the session; null makes a new one
     */
    public function __construct(
        private readonly SessionStorageFactoryInterface $elsewhere,
        private readonly \SessionHandlerInterface $handler,
        private readonly array $options = [],
        private readonly ?MetadataBag $metadata = null,
    ) {
        $this->made = new \WeakMap();
    }

    public function createStorage(?Request $request): SessionStorageInterface
    {
        if (!\extension_loaded('weft') || current() === null) {
            return $this->elsewhere->createStorage($request);
        }

        $storage = new Storage($this->handler instanceof FileHandler ? clone $this->handler : $this->handler, $this->options, $this->metadata);
        $this->made[$storage] = true;

        return $storage;
    }

    /** Called after each request. */
    public function reset(): void
    {
        foreach ($this->made as $storage => $_) {
            $storage->reset();
        }
    }
}
