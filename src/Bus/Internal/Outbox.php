<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Bus\Context;
use Weft\Bus\Progress;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Outgoing;

/**
 * What one handler sends: kept until its effects are certain, or let go at once where that was asked for.
 *
 * @internal
 */
final class Outbox
{
    /** @var list<Outgoing> */
    private array $kept = [];

    private bool $isOpen = true;

    /** @param Transport|null $direct where messages go at once; null keeps them */
    public function __construct(
        private readonly Envelopes $envelopes,
        private readonly Progress $progress,
        private readonly ?Transport $direct,
    ) {}

    public function publish(object $event, Context $cause): void
    {
        $this->add(Kind::Event, $event, $cause);
    }

    public function send(object $command, Context $cause): void
    {
        $this->add(Kind::Command, $command, $cause);
    }

    public function isOpen(): bool
    {
        return $this->isOpen;
    }

    /** @return list<Outgoing> what was kept; from now on the handler is over and nothing more is taken */
    public function close(): array
    {
        $this->isOpen = false;

        return $this->kept;
    }

    private function add(Kind $kind, object $message, Context $cause): void
    {
        if (!$this->isOpen) {
            throw new \Error('The Context of a handler that has ended cannot send ' . $message::class
                . '; what the handler starts must end before it returns');
        }
        $outgoing = $this->envelopes->wrap($kind, $message, $cause);
        if ($this->direct === null) {
            $this->kept[] = $outgoing;
        } else {
            $this->direct->publish([$outgoing], confirmed: false);
            $this->progress->sent++;
        }
    }
}
