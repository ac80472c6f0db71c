<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Sending;

use Weft\Bus\ClaimCheck;
use Weft\Bus\Claims\DatabaseStore;
use Weft\Bus\ClaimLostException;
use Weft\Bus\Header;
use Weft\Bus\Internal\Clock;
use Weft\Bus\MessageDecodingException;
use Weft\Internal\Number;
use Weft\Sql\Database;
use Weft\Sql\Transaction;

/**
 * Stores large bodies in the claim-check store and loads them.
 *
 * @internal
 */
final class BodyStore
{
    /** Size above which a body is stored, in bytes. */
    public readonly int $threshold;

    /** @param Database|null $handlers the database of the handlers' transactions */
    public function __construct(
        private readonly ?ClaimCheck $check,
        private readonly ?Database $handlers = null,
    ) {
        $this->threshold = $check->threshold ?? \PHP_INT_MAX;
    }

    /** Where the bodies are; null if not in a database. */
    public function database(): ?Database
    {
        $store = $this->check?->store;

        return $store instanceof DatabaseStore ? $store->database : null;
    }

    /** Creates or upgrades the table, where there is one: a handler's transaction may keep others from doing so. */
    public function prepare(): void
    {
        $store = $this->check?->store;
        $store instanceof DatabaseStore && $store->prepare();
    }

    /**
     * A body is deleted when it is older than the retention, although its message may not be due yet.
     *
     * @param float|null $due as {@see Clock::now()} has it; null for now
     * @throws \ValueError
     */
    public function checkDelay(string $class, ?float $due): void
    {
        $retention = $this->check->retention ?? \INF;
        if ($due !== null && ($delay = $due - Clock::now()) >= $retention) {
            throw new \ValueError("Message {$class} is delayed by " . Number::text(\round($delay)) . ' seconds, but its body is stored for ' . Number::text($retention) . ' seconds: raise the retention of the ClaimCheck, or its threshold above the size of the body');
        }
    }

    /**
     * @param string           $id          of the message
     * @param Transaction|null $transaction of the handler whose messages leave after its commit. The body is stored in it if it can be: SQLite
     *                                      has one writer at a time
     * @return string what travels instead of the body
     */
    public function store(string $id, string $body, ?Transaction $transaction): string
    {
        $store = $this->check?->store;
        $transaction?->isOpen() && $store instanceof DatabaseStore && $store->database === $this->handlers
            ? $store->putIn($transaction, $id, $body)
            : $store?->put($id, $body);

        // The hash keeps different bodies different.
        return \json_encode(['weft-claim' => $id, 'bytes' => \strlen($body), 'sha256' => \hash('sha256', $body)], \JSON_THROW_ON_ERROR);
    }

    /**
     * @param array<string, string> $headers
     * @return string the body
     * @throws ClaimLostException|MessageDecodingException
     */
    public function load(string $class, array $headers, string $ticket): string
    {
        $id = $headers[Header::CLAIM];
        $check = $this->check ?? throw MessageDecodingException::because($class, 'its body is in a claim-check store: pass the ClaimCheck of its sender to Bus::connect()');
        $body = $check->store->get($id) ?? throw new ClaimLostException("The body {$id} of a {$class} is not in the store");
        $expected = \json_decode($ticket, true)['sha256'] ?? null;
        if ($expected !== \hash('sha256', $body)) {
            throw new ClaimLostException("The body {$id} of a {$class} in the store does not match the hash in the message");
        }

        return $body;
    }

    public function prune(): int
    {
        return $this->check === null ? 0 : $this->check->store->prune($this->check->retention);
    }
}
