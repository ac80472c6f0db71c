<?php

declare(strict_types=1);

namespace Weft\Tests\Memory;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Native\GrpcCall;
use Weft\Native\Histogram;
use Weft\Native\HttpRequest;

/** Objects of the extension that nothing has initialised, that are copied, initialised twice or part of a cycle. */
final class NativeObjectsTest extends TestCase
{
    /** @return iterable<string, array{\ReflectionClass<object>}> */
    public static function classes(): iterable
    {
        foreach ((new \ReflectionExtension('weft'))->getClasses() as $class) {
            yield $class->getShortName() => [$class];
        }
    }

    /**
     * @dataProvider classes
     *
     * @param \ReflectionClass<object> $class
     */
    #[DataProvider('classes')]
    public function testUnserializingIsRefused(\ReflectionClass $class): void
    {
        $this->expectExceptionMessage("Unserialization of '{$class->name}' is not allowed");
        unserialize(sprintf('O:%d:"%s":0:{}', strlen($class->name), $class->name));
    }

    /**
     * @dataProvider classes
     *
     * @param \ReflectionClass<object> $class
     */
    #[DataProvider('classes')]
    public function testAnObjectWithoutConstructorRefusesEveryCall(\ReflectionClass $class): void
    {
        try {
            $object = $class->newInstanceWithoutConstructor();
        } catch (\ReflectionException $refused) {
            self::assertTrue($class->isFinal(), $refused->getMessage());

            return;
        }
        $this->refusesEveryCall($class, $object);
    }

    public function testASubclassThatDoesNotCallItsParentRefusesEveryCall(): void
    {
        $request = new class () extends HttpRequest {
            public function __construct()
            {
            }
        };
        $call = new class () extends GrpcCall {
            public function __construct()
            {
            }
        };

        $this->refusesEveryCall(new \ReflectionClass(HttpRequest::class), $request);
        $this->refusesEveryCall(new \ReflectionClass(GrpcCall::class), $call);
    }

    public function testACloneIsRefused(): void
    {
        $histogram = new Histogram('weft_memory_test_seconds', 'Never recorded.', []);

        $this->expectExceptionMessage('uncloneable');
        clone $histogram;
    }

    public function testACloneOfAnObjectThatIsNotInitialisedIsRefused(): void
    {
        $hollow = (new \ReflectionClass(HttpRequest::class))->newInstanceWithoutConstructor();

        $this->expectExceptionMessage('uncloneable');
        clone $hollow;
    }

    public function testSerializingIsRefused(): void
    {
        $this->expectExceptionMessage("Serialization of 'Weft\Native\Histogram' is not allowed");
        serialize(new Histogram('weft_memory_test_seconds', 'Never recorded.', []));
    }

    public function testAConstructorThatRunsTwiceReplacesWhatTheObjectIs(): void
    {
        $histogram = new Histogram('weft_memory_test_seconds', 'Never recorded.', ['a' => '1']);
        $histogram->__construct('weft_memory_test_seconds', 'Never recorded.', ['a' => '2']);
        $histogram->record(1.0);

        self::assertStringContainsString('weft_memory_test_seconds_count{a="2"} 1', \Weft\Native\metrics());
    }

    public function testACycleThroughANativeObjectIsCollected(): void
    {
        $weak = (static function (): \WeakReference {
            $holder = new \stdClass;
            $holder->native = new class () extends HttpRequest {
                public mixed $owner = null;

                public function __construct()
                {
                }
            };
            $holder->native->owner = [$holder];

            return \WeakReference::create($holder->native);
        })();
        self::assertNotNull($weak->get());

        gc_collect_cycles();

        self::assertNull($weak->get());
    }

    public function testACycleThroughAPropertyOfAFinalObjectIsCollected(): void
    {
        $weak = (static function (): \WeakReference {
            $histogram = new Histogram('weft_memory_test_seconds', 'Never recorded.', []);
            @$histogram->itself = [$histogram, new \ArrayObject([$histogram])];

            return \WeakReference::create($histogram);
        })();

        gc_collect_cycles();

        self::assertNull($weak->get());
    }

    /** @param \ReflectionClass<object> $class */
    private function refusesEveryCall(\ReflectionClass $class, object $object): void
    {
        $arguments = new Arguments(1);
        foreach ($class->getMethods(\ReflectionMethod::IS_PUBLIC) as $method) {
            if ($method->isStatic() || $method->isConstructor()) {
                continue;
            }
            try {
                $method->invokeArgs($object, $arguments->fitting($method));
                self::fail("{$class->name}::{$method->name}() answered");
            } catch (\PHPUnit\Framework\AssertionFailedError $failed) {
                throw $failed;
            } catch (\Throwable $refused) {
                self::assertNotSame('', $refused->getMessage());
            }
        }
        var_export($object, true);
        print_r($object, true);
        self::assertNotNull($object);
    }
}
