<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Transport;

use Weft\Bus\Transport;
use Weft\Bus\UndefinedQueueException;

use function Weft\async;
use function Weft\delay;

/** What becomes of the consumer of a queue in a database that another process deletes. */
trait DeletedQueues
{
    public function testTheConsumerOfADeletedQueueEndsAndTakesNothingOfAQueueThatIsDeclaredThen(): void
    {
        $this->on(function (Transport $transport): void {
            $other = $this->connect();
            $transport->declare($this->queue(), [$this->type('a')]);
            $consumer = $transport->consume($this->queue(), 10);
            $waiting = async(static function () use ($consumer): string {
                try {
                    return 'taken: ' . \count($consumer->next(10, wait: self::DEADLINE));
                } catch (UndefinedQueueException $gone) {
                    return $gone->getMessage();
                }
            });
            delay(0.1);
            $other->delete($this->queue());
            $other->declare($this->queue('other'), [$this->type('b')]);
            $other->declare($this->queue(), [$this->type('a')]);
            $other->publish([$this->message('a', '1'), $this->message('b', '2')]);
            self::assertStringContainsString("Queue \"{$this->queue()}\" is not declared", $waiting->await());
            $consumer->close();
            self::assertSame([['1'], ['2']], [$this->drain($other), $this->drain($other, 'other')]);
            $other->close();
        });
    }

    public function testAnAcknowledgementForADeletedQueueSettlesNothingInOneThatIsDeclaredThen(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([$this->message('a', 'old')]);
            $consumer = $transport->consume($this->queue(), 10);
            [$old] = $this->take($consumer, 1);
            $transport->delete($this->queue());
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([$this->message('a', 'new')]);
            $consumer->ack($old);
            $consumer->close();

            self::assertSame(['new'], $this->drain($transport));
        });
    }
}
