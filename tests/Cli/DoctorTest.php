<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\TestCase;
use Weft\Tests\Extension;
use Weft\Tests\Hooks\Support\Module;

final class DoctorTest extends TestCase
{
    /** Keeps a source checkout from loading its extension. */
    private const NO_EXTENSION = ['-d', 'disable_functions=pcntl_exec'];

    public function testAHealthyMachineIsLeftWithExitCodeZero(): void
    {
        $doctor = Weft::run(['doctor']);

        self::assertSame(0, $doctor->exitCode, $doctor->output . $doctor->errors);
        self::assertMatchesRegularExpression('/^ok +PHP +' . \preg_quote(\PHP_VERSION) . '$/m', $doctor->output);
        self::assertStringContainsString('like the library', $doctor->output);
        self::assertStringEndsWith("0 failed\n", $doctor->output);
    }

    public function testAMissingExtensionFailsAndSaysWhatToDo(): void
    {
        $doctor = Weft::run(['doctor'], self::NO_EXTENSION);

        self::assertSame(1, $doctor->exitCode);
        self::assertMatchesRegularExpression('/^fail +extension weft +not loaded\n +Add extension=\/path\/to\/libweft\.so to /m', $doctor->output);
    }

    public function testASmallMemoryLimitIsAWarning(): void
    {
        $doctor = Weft::run(['doctor'], ['-d', 'memory_limit=64M']);

        self::assertSame(0, $doctor->exitCode);
        self::assertMatchesRegularExpression('/^warn +memory_limit +64M\n +Set -1.* Help: weft explain doctor-memory-limit$/m', $doctor->output);
    }

    public function testItNamesTheLibrariesWhoseWaitsSuspendTasks(): void
    {
        $doctor = Weft::run(['doctor']);

        self::assertMatchesRegularExpression('/^ok +hooks +sleep, sockets, .*; checked; in php/m', $doctor->output);
    }

    public function testItSaysThatHooksAreOff(): void
    {
        \putenv('WEFT_HOOKS=off');
        try {
            $doctor = Weft::run(['doctor']);
        } finally {
            \putenv('WEFT_HOOKS');
        }

        self::assertMatchesRegularExpression('/^ok +hooks +off \(WEFT_HOOKS\)/m', $doctor->output);
    }

    public function testItWarnsWhereWaitsBlockInSpiteOfTheHooks(): void
    {
        \putenv('WEFT_HOOKS_EXCLUDE=php');
        try {
            $doctor = Weft::run(['doctor']);
        } finally {
            \putenv('WEFT_HOOKS_EXCLUDE');
        }

        self::assertSame(0, $doctor->exitCode);
        self::assertMatchesRegularExpression('/^warn +hooks +do not work: a call of fread\(\) in a task has blocked/m', $doctor->output);
    }

    public function testItNamesTheExtensionsWhoseFunctionsBlockAsTheExtensionDecides(): void
    {
        $module = Module::compile('unlisted');
        try {
            $doctor = Weft::run(['doctor'], ['-d', 'extension=' . Extension::library(), '-d', "extension=$module->file"]);
        } finally {
            $module->remove();
        }

        self::assertSame(0, $doctor->exitCode, $doctor->errors);
        self::assertMatchesRegularExpression('/^warn +hooks +not in (.*, )?unlisted\b.*\n +Weft has no rules for these extensions/m', $doctor->output);
        self::assertDoesNotMatchRegularExpression('/; checked; in .*unlisted/', $doctor->output, 'its calls are replaced, but block');
    }
}
