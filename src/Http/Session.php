<?php

declare(strict_types=1);

namespace Weft\Http;

/**
 * Values that belong to one browser, see {@see Sessions}. Read when they are first asked for, and kept after the handler if it changed them.
 *
 * ```
 * $request->session()->renew()->set('user', $user->id);
 * ```
 *
 * Several requests of a session may run at once: each keeps the values it has set, and of one value the last counts.
 */
final class Session
{
    /** @var array<string, mixed>|null */
    private ?array $values = null;
    /** @var array<string, mixed> what was set; null for what was removed */
    private array $changes = [];
    private bool $isRenewed = false;
    private bool $isDestroyed = false;

    /**
     * @internal
     *
     * @param \Closure(): array<string, mixed> $load
     */
    public function __construct(private readonly \Closure $load)
    {
    }

    public function value(string $name, mixed $default = null): mixed
    {
        return $this->values()[$name] ?? $default;
    }

    /** @return array<string, mixed> */
    public function values(): array
    {
        return $this->values ??= ($this->load)();
    }

    /**
     * @param mixed $value null, a scalar, or an array of them: it is kept as JSON
     *
     * @throws \ValueError JSON cannot hold it
     */
    public function set(string $name, mixed $value): self
    {
        self::check($name, $value);
        $values = $this->values();
        $values[$name] = $this->changes[$name] = $value;
        $this->values = \array_filter($values, static fn(mixed $one): bool => $one !== null);

        return $this;
    }

    public function remove(string $name): self
    {
        return $this->set($name, null);
    }

    /**
     * Gives the session a new id and keeps its values. Call it when a user logs in, so that the old id gives no access to the new
     * session (session fixation).
     */
    public function renew(): self
    {
        $this->isRenewed = true;

        return $this;
    }

    /** Deletes the session with all its values, and its cookie: call it when a user logs out. A value that is set afterwards begins a new session. */
    public function destroy(): self
    {
        $this->values = $this->changes = [];
        $this->isDestroyed = true;

        return $this;
    }

    /** @internal */
    public function isLoaded(): bool
    {
        return $this->values !== null;
    }

    /** @internal */
    public function isRenewed(): bool
    {
        return $this->isRenewed;
    }

    /** @internal */
    public function isDestroyed(): bool
    {
        return $this->isDestroyed;
    }

    /**
     * @internal
     *
     * @return array<string, mixed> null for what was removed
     */
    public function changes(): array
    {
        return $this->changes;
    }

    private static function check(string $name, mixed $value): void
    {
        $isPlain = $value === null || \is_scalar($value);
        if (\is_array($value)) {
            $isPlain = true;
            \array_walk_recursive($value, static function (mixed $one) use (&$isPlain): void {
                $isPlain = $isPlain && ($one === null || \is_scalar($one));
            });
        }
        if (!$isPlain || \json_encode([$name => $value]) === false) {
            throw new \ValueError("The session value \"$name\" must be null, a scalar or an array of them that JSON can hold, got " . \get_debug_type($value));
        }
    }
}
