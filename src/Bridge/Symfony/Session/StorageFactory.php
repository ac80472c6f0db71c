<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Session;

use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Session\Storage\Handler\NativeFileSessionHandler;
use Symfony\Component\HttpFoundation\Session\Storage\Handler\StrictSessionHandler;
use Symfony\Component\HttpFoundation\Session\Storage\MetadataBag;
use Symfony\Component\HttpFoundation\Session\Storage\SessionStorageFactoryInterface;
use Symfony\Component\HttpFoundation\Session\Storage\SessionStorageInterface;
use Symfony\Contracts\Service\ResetInterface;
use Weft\Runtime\Internal\Scheduler;

use function Weft\current;

/** Makes the storage of a request's session: Weft's own in a task, the configured one on other servers. */
final class StorageFactory implements SessionStorageFactoryInterface, ResetInterface
{
    private readonly \SessionHandlerInterface $handler;

    private bool $hasFailed = false;

    /** @var \WeakMap<Storage, true> those that are in use */
    private \WeakMap $made;

    /**
     * @param \SessionHandlerInterface $handler PHP's own for files works with PHP's own sessions only: Weft's takes its place, in the same directory
     * @param array<string, mixed> $options as of the session in the configuration of the framework
     * @param MetadataBag|null $metadata times of the session; null makes a new one
     */
    public function __construct(
        private readonly SessionStorageFactoryInterface $elsewhere,
        \SessionHandlerInterface $handler,
        private readonly array $options = [],
        private readonly ?MetadataBag $metadata = null,
    ) {
        $this->handler = self::isNative($handler) ? new FileHandler(self::directory((string) \ini_get('session.save_path'))) : $handler;
        $this->made = new \WeakMap();
    }

    public function createStorage(?Request $request): SessionStorageInterface
    {
        if (!\extension_loaded('weft') || current() === null) {
            return $this->elsewhere->createStorage($request);
        }

        $storage = new Storage($this->handler instanceof FileHandler ? clone $this->handler : $this->handler, $this->options, $this->metadata, $this->saveAfterExit(...));
        $this->made[$storage] = true;

        return $storage;
    }

    /** Called on `kernel.exception`: without a response, nothing saves the session of the request. */
    public function fail(): void
    {
        $this->hasFailed = true;
    }

    /** Saves a session that has started if the request calls `exit()`, as PHP does. Of other requests Symfony's listener has saved it by then. */
    private function saveAfterExit(Storage $storage): void
    {
        if (Scheduler::context()?->realm === null) {
            return;
        }
        $made = \WeakReference::create($storage);
        \register_shutdown_function(function () use ($made): void {
            $storage = $made->get();
            !$this->hasFailed && $storage?->isStarted() === true && $storage->save();
        });
    }

    /** Also where the DSN of the configuration, `file://…`, is known at run time only. A handler that extends it may encrypt, for example, and stays. */
    private static function isNative(\SessionHandlerInterface $handler): bool
    {
        if ($handler instanceof StrictSessionHandler && \property_exists(StrictSessionHandler::class, 'handler')) {
            $handler = (new \ReflectionProperty(StrictSessionHandler::class, 'handler'))->getValue($handler);
        }

        return \in_array($handler::class, [NativeFileSessionHandler::class, \SessionHandler::class], true);
    }

    /** Of `session.save_path`, which the handler for files has set: `/path`, `2;/path` or `2;0600;/path`. */
    private static function directory(string $path): string
    {
        $parts = \explode(';', $path);
        $directory = \end($parts);

        return $directory === '' ? \sys_get_temp_dir() : $directory;
    }

    /** Called after each request. */
    public function reset(): void
    {
        $this->hasFailed = false;
        foreach ($this->made as $storage => $_) {
            $storage->reset();
        }
    }
}
