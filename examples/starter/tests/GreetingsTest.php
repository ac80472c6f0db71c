<?php

declare(strict_types=1);

namespace App\Tests;

use App\Greet;
use App\Greeted;
use App\Greetings;
use PHPUnit\Framework\TestCase;
use Weft\Testing\Simulation;
use Weft\Testing\TestBus;

final class GreetingsTest extends TestCase
{
    public function testAGreetingIsStoredAndPublished(): void
    {
        Simulation::run(static function (TestBus $bus): void {
            $bus->database->execute('CREATE TABLE greetings (id TEXT PRIMARY KEY, text TEXT NOT NULL)');
            $bus->handlers(new Greetings());

            $bus->send(new Greet('1', 'Ada'));

            $bus->assertSent(Greeted::class)->once()->with(name: 'Ada');
            self::assertSame(['Hello, Ada!'], $bus->database->execute('SELECT text FROM greetings')->column());
        });
    }
}
