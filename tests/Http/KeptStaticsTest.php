<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\TestCase;
use Weft\Http\Internal\KeptStatics;
use Weft\Tests\Http\Fixtures\Settings;

final class KeptStaticsTest extends TestCase
{
    protected function setUp(): void
    {
        Settings::$value = 'boot';
        Settings::$object = (object) ['time' => 'boot'];
    }

    public function testAValueIsPutBack(): void
    {
        $kept = $this->keep();
        Settings::$value = 'request';

        $kept->putBack();

        self::assertSame('boot', Settings::$value);
    }

    /** As that of Symfony's Clock, before one is set. */
    public function testATypedPropertyMayHaveNoValue(): void
    {
        $kept = $this->keep();
        $kept->putBack();
        Settings::$typed = new \stdClass();

        $kept->putBack();

        self::assertInstanceOf(\stdClass::class, Settings::$typed);
    }

    public function testAnObjectThatChangesItselfIsPutBackAsACopy(): void
    {
        $kept = $this->keep(Settings::class);
        foreach (['first', 'second'] as $request) {
            Settings::$object->time = $request;

            $kept->putBack();

            self::assertSame('boot', Settings::$object->time);
        }
    }

    public function testAnotherObjectIsPutBackItself(): void
    {
        $object = Settings::$object;
        $kept = $this->keep();
        Settings::$object = new \stdClass();

        $kept->putBack();

        self::assertSame($object, Settings::$object);
    }

    /** @param class-string ...$mutable */
    private function keep(string ...$mutable): KeptStatics
    {
        return new KeptStatics(\array_map(static fn(string $name) => new \ReflectionProperty(Settings::class, $name), ['value', 'typed', 'object']), \array_values($mutable));
    }
}
