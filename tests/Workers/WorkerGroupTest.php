<?php

declare(strict_types=1);

namespace Weft\Tests\Workers;

use PHPUnit\Framework\TestCase;
use Psr\Log\NullLogger;
use Weft\Native;
use Weft\Workers\Internal\Process;
use Weft\Workers\Internal\RunOptions;
use Weft\Workers\Internal\State;
use Weft\Workers\Internal\WorkerGroup;
use Weft\Workers\SupervisorException;

final class WorkerGroupTest extends TestCase
{
    public function testAGroupThatStopsHasNoWorkerToStart(): void
    {
        $group = self::group();
        self::assertSame(0.0, $group->secondsUntilDue(1.0));
        $group->stop('a test', 1.0);

        // A supervisor that waits for no time at all takes a processor while its last worker drains.
        self::assertGreaterThan(0.0, $group->secondsUntilDue(1.0));
    }

    public function testAFirstWorkerThatCannotBeStartedIsFatal(): void
    {
        $this->expectException(SupervisorException::class);
        $this->expectExceptionMessage('cannot start a worker: No such file or directory');

        self::group()->tick(1.0);
    }

    public function testEarlierFailuresOfAWorkerThatWorkedAndNowHangsDoNotEndTheSupervisor(): void
    {
        $group = self::group();
        $slot = $group->slots[1];
        $slot->failures = 8;
        self::assertTrue($group->hasGivenUp());
        $slot->current = new Process(0, $slot, 1.0, null);
        $slot->current->readyAt = 2.0;
        $slot->current->state = State::Draining;

        self::assertFalse($group->hasGivenUp());
    }

    public function testAReloadOfWorkersThatHaveEndedFinishesWhenTheNextOnesAreReady(): void
    {
        $group = new WorkerGroup(new RunOptions(['/bin/sleep', '60'], workers: 3), new Native\Supervisor(3), new NullLogger());
        try {
            $group->reload('a test', 2.0);
            $group->tick(2.0);
            foreach ($group->slots as $slot) {
                $group->markReady($slot->current, 2.1);
            }

            self::assertNull($group->reloadSince);
        } finally {
            $group->kill('the test ends');
        }
    }

    private static function group(): WorkerGroup
    {
        return new WorkerGroup(new RunOptions(['/nonexistent/program']), new Native\Supervisor(1), new NullLogger());
    }
}
