<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Saga\Fixtures;

use Weft\Bus\Saga\Saga;
use Weft\Bus\Saga\SagaContext;
use Weft\Bus\Saga\SagaStart;
use Weft\Bus\Saga\SagaTimeout;
use Weft\Bus\SendOptions;

final class Step
{
    public function __construct(public readonly string $walk, public readonly int $number) {}
}

final class Stepped
{
    public function __construct(public readonly string $walk, public readonly int $count, public readonly int $number, public readonly string $chain) {}
}

/** Whatever order its steps come in, each must build on the one before. */
#[Saga(name: 'walk', by: 'walk')]
final class Walk
{
    /** How often its method was called in this process. */
    public static int $calls = 0;

    public int $count = 0;
    public string $chain = '';

    #[SagaStart(joinExisting: true)]
    public function step(Step $step, SagaContext $saga): void
    {
        self::$calls++;
        $this->count++;
        $this->chain = \sha1("{$this->chain} {$step->number}");
        $saga->publish(new Stepped($saga->id(), $this->count, $step->number, $this->chain));
    }
}

final class Begin
{
    public function __construct(public readonly string $id) {}
}

final class Tick
{
    public function __construct(public readonly int $number) {}
}

final class Ticked
{
    public function __construct(public readonly string $id, public readonly int $number) {}
}

/** Reminds itself five times. */
#[Saga(name: 'ticker', by: 'id')]
final class Ticker
{
    public const TICKS = 5;

    public int $ticks = 0;

    #[SagaStart(command: true)]
    public function begin(Begin $command, SagaContext $saga): void
    {
        $saga->timeout(new Tick(1), new SendOptions(delay: 0.3));
    }

    #[SagaTimeout]
    public function tick(Tick $tick, SagaContext $saga): void
    {
        $this->ticks++;
        $saga->publish(new Ticked($saga->id(), $tick->number));
        $tick->number < self::TICKS ? $saga->timeout(new Tick($tick->number + 1), new SendOptions(delay: 0.3)) : $saga->complete();
    }
}
