<?php

declare(strict_types=1);

namespace Weft\Tests;

use PHPUnit\Framework\TestCase;

use function Weft\run;

/**
 * Runs each test of a test case inside a task, where waiting suspends instead of blocking; `setUp()` and `tearDown()` stay outside.
 *
 * PHPUnit 9.6 to 13 have no method in common that can be overridden around a test: all of them call the method whose name they keep
 * in a private property.
 */
trait InTask
{
    private string $testMethod;

    /** PHPUnit calls this as the last thing before the test. */
    protected function assertPreConditions(): void
    {
        $this->testMethod = self::methodName()->getValue($this);
        self::methodName()->setValue($this, 'runTestInTask');
    }

    /** Called in the test's place. */
    public function runTestInTask(#[\SensitiveParameter] mixed ...$arguments): void
    {
        self::methodName()->setValue($this, $this->testMethod);
        run(fn(): mixed => $this->{$this->testMethod}(...$arguments));
    }

    private static function methodName(): \ReflectionProperty
    {
        return new \ReflectionProperty(TestCase::class, \property_exists(TestCase::class, 'methodName') ? 'methodName' : 'name');
    }
}
