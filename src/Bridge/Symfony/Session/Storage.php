<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Session;

use Symfony\Component\HttpFoundation\Session\SessionBagInterface;
use Symfony\Component\HttpFoundation\Session\Storage\MetadataBag;
use Symfony\Component\HttpFoundation\Session\Storage\SessionStorageInterface;

/**
 * A session that belongs to its request: PHP's own (`session_start()`, `$_SESSION`) is one for the whole process.
 *
 * An id that the client has made up is not accepted, as with `session.use_strict_mode`. The cookie is set by Symfony's session listener.
 */
final class Storage implements SessionStorageInterface
{
    private const ID = '/^[a-zA-Z0-9,-]{22,250}$/D';

    private bool $started = false;

    private string $id = '';

    private string $name;

    /** @var array<string, SessionBagInterface> */
    private array $bags = [];

    /** @var array<array-key, mixed> of each bag, by its storage key, and what other code has in the session */
    private array $data = [];

    private MetadataBag $metadata;

    private readonly Format $format;

    /**
     * @param array<string, mixed> $options as of the session in the configuration of the framework: name, save_path, serialize_handler
     * @param MetadataBag|null $metadata times of the session; null makes a new one
     * @param (\Closure(self): void)|null $onStart is called when the session has started
     */
    public function __construct(
        private readonly \SessionHandlerInterface $handler,
        private readonly array $options = [],
        ?MetadataBag $metadata = null,
        private readonly ?\Closure $onStart = null,
    ) {
        $this->metadata = $metadata === null ? new MetadataBag() : clone $metadata;
        $this->format = Format::configured($options);
        $this->name = (string) ($options['name'] ?? (\ini_get('session.name') ?: 'PHPSESSID'));
    }

    public function start(): bool
    {
        if ($this->started) {
            return true;
        }
        $this->handler->open((string) ($this->options['save_path'] ?? ''), $this->name);
        $isKnown = \preg_match(self::ID, $this->id) === 1
            && (!$this->handler instanceof \SessionUpdateTimestampHandlerInterface || $this->handler->validateId($this->id));
        if (!$isKnown) {
            $this->id = self::newId();
        }
        $stored = (string) $this->handler->read($this->id);
        $data = $stored === '' ? [] : $this->format->decode($stored);
        if ($data === null) {
            // Of another program, or damaged: it stays as it is, and the visitor has a new session.
            $this->renew();
        }
        $this->load($data ?? []);
        $this->onStart === null || ($this->onStart)($this);

        return true;
    }

    public function isStarted(): bool
    {
        return $this->started;
    }

    public function getId(): string
    {
        return $this->id;
    }

    public function setId(string $id): void
    {
        if ($this->started) {
            throw new \LogicException('The id of a session that is active cannot change.');
        }
        $this->id = $id;
    }

    public function getName(): string
    {
        return $this->name;
    }

    public function setName(string $name): void
    {
        if ($this->started) {
            throw new \LogicException('The name of a session that is active cannot change.');
        }
        $this->name = $name;
    }

    public function regenerate(bool $destroy = false, ?int $lifetime = null): bool
    {
        if (!$this->started) {
            return false;
        }
        if ($destroy) {
            $this->metadata->stampNew($lifetime);
            $this->handler->destroy($this->id);
        } else {
            $this->write($this->data);
        }
        $this->renew();

        return true;
    }

    public function save(): void
    {
        if (!$this->started) {
            throw new \RuntimeException('The session was not started, or it is saved already.');
        }
        $data = $this->data;
        foreach ($this->bags as $bag) {
            if (($data[$bag->getStorageKey()] ?? []) === []) {
                unset($data[$bag->getStorageKey()]);
            }
        }
        if (\array_keys($data) === [$this->metadata->getStorageKey()]) {
            $data = [];
        }
        try {
            $data === [] ? $this->handler->destroy($this->id) : $this->write($data);
        } finally {
            $this->started = false;
            $this->handler->close();
        }
        if (\random_int(1, (int) ($this->options['gc_divisor'] ?? 100)) <= (int) ($this->options['gc_probability'] ?? 1)) {
            $this->handler->gc((int) ($this->options['gc_maxlifetime'] ?? \ini_get('session.gc_maxlifetime')));
        }
    }

    public function clear(): void
    {
        foreach ($this->bags as $bag) {
            $bag->clear();
        }
        $this->load([]);
    }

    public function getBag(string $name): SessionBagInterface
    {
        $bag = $this->bags[$name] ?? throw new \InvalidArgumentException("The session has no bag \"$name\".");
        if (!$this->started) {
            $this->start();
        }

        return $bag;
    }

    public function registerBag(SessionBagInterface $bag): void
    {
        if ($this->started) {
            throw new \LogicException('A bag cannot be registered when the session has started.');
        }
        $this->bags[$bag->getName()] = $bag;
    }

    public function getMetadataBag(): MetadataBag
    {
        return $this->metadata;
    }

    /**
     * Forgets the session of the request that has ended: Symfony 5.4 keeps one session object in each kernel. The next request has its
     * own id, or none.
     */
    public function reset(): void
    {
        if ($this->started) {
            $this->handler->close();
        }
        [$this->started, $this->id] = [false, ''];
        $this->data = [];
    }

    public function __destruct()
    {
        if ($this->started) {
            // A request that failed before its response: the session stays as it was, and the lock is released.
            $this->handler->close();
        }
    }

    /** Leaves what is stored, and goes on under a new id. */
    private function renew(): void
    {
        $this->handler->close();
        $this->id = self::newId();
        $this->handler->open((string) ($this->options['save_path'] ?? ''), $this->name);
        $this->handler->read($this->id);
    }

    /** @param array<array-key, mixed> $data */
    private function load(array $data): void
    {
        $this->data = $data;
        foreach ([...\array_values($this->bags), $this->metadata] as $bag) {
            $key = $bag->getStorageKey();
            if (!\is_array($this->data[$key] ?? null)) {
                $this->data[$key] = [];
            }
            // The bag keeps a reference.
            $bag->initialize($this->data[$key]);
        }
        $this->started = true;
    }

    /**
     * @param array<array-key, mixed> $data
     *
     * @throws \RuntimeException the handler could not write: what the request has changed would be lost without a sign
     */
    private function write(array $data): void
    {
        if (!$this->handler->write($this->id, $this->format->encode($data))) {
            throw new \RuntimeException('The session was not saved: ' . \get_debug_type($this->handler) . '::write() failed');
        }
    }

    private static function newId(): string
    {
        return \bin2hex(\random_bytes(20));
    }
}
