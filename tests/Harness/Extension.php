<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

use PHPUnit\Event\Test\PreparationStarted;
use PHPUnit\Event\Test\PreparationStartedSubscriber;
use PHPUnit\Event\Test\Skipped;
use PHPUnit\Event\Test\SkippedSubscriber;
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
        );
    }
}
