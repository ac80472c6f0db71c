<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

use Symfony\Component\VarExporter\LazyObjectInterface;
use Weft\Bus\EventListener;
use Weft\Sql\Transaction;

// Where Symfony is not installed, an interface of its name is enough.
\interface_exists(LazyObjectInterface::class) || eval('namespace Symfony\Component\VarExporter; interface LazyObjectInterface {}');

/** Several services inherit this listener. */
abstract class Notifier
{
    public int $calls = 0;

    public function __construct(private readonly string $channel, private readonly int $failures = 0) {}

    #[EventListener]
    public function stored(CustomerStored $event, Transaction $transaction): void
    {
        if (++$this->calls <= $this->failures) {
            throw new \RuntimeException("{$this->channel} is down");
        }
        $transaction->execute('INSERT INTO notes VALUES (?)', [$this->channel]);
    }
}

final class Mail extends Notifier
{
    public function __construct()
    {
        parent::__construct('mail');
    }
}

final class TextMessage extends Notifier
{
    public function __construct(int $failures = 0)
    {
        parent::__construct('text', $failures);
    }
}

class Pager
{
    #[EventListener]
    public function stored(CustomerStored $event): void {}
}

/** As the container of Symfony makes it of a lazy service. */
final class PagerGhost1a2b3c4 extends Pager implements LazyObjectInterface
{
    public function isLazyObjectInitialized(bool $partial = false): bool
    {
        return true;
    }

    public function initializeLazyObject(): object
    {
        return $this;
    }

    public function resetLazyObject(): bool
    {
        return false;
    }
}
