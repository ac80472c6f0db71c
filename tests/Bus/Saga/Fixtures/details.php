<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Saga\Fixtures;

use Psr\Log\LoggerInterface;
use Weft\Bus\Header;
use Weft\Bus\Saga\Saga;
use Weft\Bus\Saga\SagaContext;
use Weft\Bus\Saga\SagaListener;
use Weft\Bus\Saga\SagaStart;
use Weft\Bus\Saga\SagaTimeout;
use Weft\Bus\SendOptions;
use Weft\Bus\Saga\UnmatchedPolicy;
use Weft\Sql\Transaction;

use function Weft\async;
use function Weft\delay;

final class Asked
{
    public function __construct(public readonly string $what) {}
}

final class Answered
{
    public function __construct(public readonly string $what) {}
}

/** Everything that one message leads to, found by the conversation. */
#[Saga(name: 'conversation', header: Header::CORRELATION_ID)]
final class Conversation
{
    /** @var list<string> */
    public array $heard = [];

    #[SagaStart]
    public function asked(Asked $event, SagaContext $saga): void
    {
        $this->heard[] = $event->what;
        $saga->publish(new Answered($event->what));
    }

    #[SagaListener]
    public function answered(Answered $event, SagaContext $saga): void
    {
        $this->heard[] = "answer to {$event->what}";
        $saga->complete();
    }
}

/** Everything that one message leads to, in a task that the method starts. */
#[Saga(name: 'delegation', header: Header::CORRELATION_ID)]
final class Delegation
{
    /** @var list<string> */
    public array $heard = [];

    #[SagaStart]
    public function asked(Asked $event, SagaContext $saga): void
    {
        async(function () use ($event, $saga): void {
            delay(0.01);
            $event->what === 'nothing' && throw new \DomainException('nothing was asked');
            $this->heard[] = $event->what;
            $saga->publish(new Answered($event->what));
            $saga->complete();
        });
    }
}

final class Opened
{
    public function __construct(public readonly int $number) {}
}

final class Tagged
{
    public function __construct(public readonly int $number, public readonly string $tag, public readonly bool $off = false) {}
}

final class Found
{
    public function __construct(public readonly string $tag) {}
}

final class Ended
{
    public function __construct(public readonly int $number, public readonly ?string $expires = null, public readonly bool $twice = false) {}
}

#[Saga(name: 'case', by: 'number', expires: null, ended: UnmatchedPolicy::DeadLetter, version: 2)]
final class Dossier
{
    public int $found = 0;
    public string $note = '';

    #[SagaStart(existing: UnmatchedPolicy::Ignore)]
    public function opened(Opened $event): void {}

    #[SagaListener]
    public function tagged(Tagged $event, SagaContext $saga): void
    {
        $event->off ? $saga->dissociate('tag', $event->tag) : $saga->associate('tag', $event->tag);
    }

    #[SagaListener(by: 'tag')]
    public function found(Found $event, SagaContext $saga, Transaction $transaction, LoggerInterface $logger): void
    {
        $this->found++;
        $transaction->execute('INSERT INTO effects (id) VALUES (?)', [$saga->id()]);
    }

    #[SagaListener]
    public function ended(Ended $event, SagaContext $saga): void
    {
        if ($event->expires !== null) {
            $saga->expireAt(new \DateTimeImmutable($event->expires));

            return;
        }
        $saga->complete();
        $event->twice && $saga->fail();
    }
}

/** Its start names the property with its ids, and its listener one with values that it associates. */
#[Saga(name: 'shelf')]
final class Shelf
{
    public int $found = 0;

    #[SagaStart(by: 'number', joinExisting: true)]
    public function tagged(Tagged $event, SagaContext $saga): void
    {
        $saga->associate($event->off ? 'number' : 'tag', $event->tag);
    }

    #[SagaListener(by: 'tag')]
    public function found(Found $event): void
    {
        $this->found++;
    }

    #[SagaListener(by: 'number')]
    public function ended(Ended $event, SagaContext $saga): void
    {
        if ($event->twice) {
            $id = $saga->timeout(new Asked('too late'), new SendOptions(delay: 1.0));
            $saga->complete(\json_encode([$saga->cancel($id), $saga->cancel($id)], \JSON_THROW_ON_ERROR));

            return;
        }
        $saga->complete();
    }

    #[SagaTimeout]
    public function late(Asked $late): void {}
}

/** Several sagas inherit its start. */
abstract class Petition
{
    public int $opened = 0;

    #[SagaStart]
    public function opened(Opened $event): void
    {
        $this->opened++;
    }
}

#[Saga(name: 'city', by: 'number')]
final class CityPetition extends Petition {}

#[Saga(name: 'state', by: 'number')]
final class StatePetition extends Petition {}

#[Saga(header: 'ticket')]
final class ByHeader
{
    #[SagaStart]
    public function asked(Asked $event): void {}
}
