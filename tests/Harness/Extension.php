<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

use PHPUnit\Event\Test\PreparationStarted;
use PHPUnit\Event\Test\PreparationStartedSubscriber;
use PHPUnit\Event\Test\Skipped;
use PHPUnit\Event\Test\SkippedSubscriber;
use PHPUnit\Event\TestSuite\Skipped as SkippedSuite;
use PHPUnit\Event\TestSuite\SkippedSubscriber as SkippedSuiteSubscriber;
use PHPUnit\Runner\Extension\Extension as PhpUnitExtension;
use PHPUnit\Runner\Extension\Facade;
use PHPUnit\Runner\Extension\ParameterCollection;
use PHPUnit\TextUI\Configuration\Configuration;

/** How PHPUnit 10 and later call the {@see Guard}. */
final class Extension implements PhpUnitExtension
{
    public function bootstrap(Configuration $configuration, Facade $facade, ParameterCollection $parameters): void
    {
        $facade->registerSubscribers(
            new class () implements PreparationStartedSubscriber {
                public function notify(PreparationStarted $event): void
                {
                    Guard::instance()->beforeTest($event->test()->id());
                }
            },
            new class () implements SkippedSubscriber {
                public function notify(Skipped $event): void
                {
                    Guard::instance()->skipped($event->test()->id(), $event->message());
                }
            },
            new class () implements SkippedSuiteSubscriber {
                public function notify(SkippedSuite $event): void
                {
                    foreach ($event->testSuite()->tests() as $test) {
                        Guard::instance()->skipped($test->id(), $event->message());
                    }
                }
            },
        );
    }
}
