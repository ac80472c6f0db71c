<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Transport;

use Weft\Bus\Transport;
use Weft\Bus\Transport\RabbitMqQueue;

/** Quorum queues, on one node. */
final class RabbitMqQuorumTest extends RabbitMqConformance
{
    protected function kind(): RabbitMqQueue
    {
        return RabbitMqQueue::quorum();
    }

    public function testAMessageThatIsRequeuedAgainAndAgainIsNeverDroppedAndCarriesNoCountOfTheBroker(): void
    {
        $this->on(function (Transport $transport): void {
            $transport->declare($this->queue(), [$this->type('a')]);
            $transport->publish([$this->message('a', '1')]);
            $consumer = $transport->consume($this->queue(), 1);
            for ($i = 0; $i < 50; $i++) {
                [$delivery] = $this->take($consumer, 1);
                self::assertSame($i > 0, $delivery->redelivered);
                self::assertSame(['weft-kind' => 'command'], $delivery->headers);
                $consumer->requeue($delivery);
            }
            self::assertSame('1', $this->take($consumer, 1)[0]->body);
        });
    }
}
