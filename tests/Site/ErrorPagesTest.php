<?php

declare(strict_types=1);

namespace Weft\Tests\Site;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Cli\Internal\Diagnosis;
use Weft\Internal\ErrorDocumentation;
use Weft\Log\Format;
use Weft\Log\StreamLogger;
use Weft\Pool\PoolClosedException;
use Weft\Site\ForeignClasses;
use Weft\Site\PublicClasses;
use Weft\Site\Reference;
use Weft\Tests\Cli\Weft;

require_once __DIR__ . '/../../site/autoload.php';

/** Every exception and every check of `weft doctor` has a page, and the texts that people meet name it. */
final class ErrorPagesTest extends TestCase
{
    private const ROOT = __DIR__ . '/../..';
    private const SECTIONS = ['Cause', 'How to confirm', 'How to fix'];

    protected function tearDown(): void
    {
        \putenv(ErrorDocumentation::ADDRESS);
    }

    public function testEveryExceptionHasAPage(): void
    {
        $names = [];
        foreach (self::exceptions() as $class) {
            $name = ErrorDocumentation::ofClass($class)->name;
            self::assertArrayNotHasKey($name, $names, "$class and " . ($names[$name] ?? '') . ' have one page');
            $names[$name] = $class;
            self::assertStringContainsString("\n`$class`\n", self::page($name), "docs/errors/$name.md does not name its class");
        }
        self::assertGreaterThan(130, \count($names));
    }

    public function testEveryCheckOfTheDoctorHasAPage(): void
    {
        \preg_match_all("/Finding::(?:warn|fail)\(\s*'([^']+)'/", (string) \file_get_contents((string) (new \ReflectionClass(Diagnosis::class))->getFileName()), $checks);
        self::assertGreaterThan(5, \count(\array_unique($checks[1])));
        foreach (\array_unique($checks[1]) as $subject) {
            self::assertStringContainsString("# weft doctor: $subject\n", self::page(ErrorDocumentation::ofCheck($subject)->name));
        }
    }

    public function testEveryPageSaysCauseConfirmationAndFix(): void
    {
        foreach (self::pages() as $name => $page) {
            \preg_match_all('/^## (.+)\n\n(.+)$/m', $page, $sections);
            self::assertSame(self::SECTIONS, $sections[1], $name);
            foreach ($sections[2] as $text) {
                self::assertGreaterThan(15, \strlen($text), "$name: $text");
            }
        }
    }

    public function testEveryOptionAndCommandThatADocumentNamesExists(): void
    {
        ForeignClasses::register(standIns: false);
        $classes = [];
        // Other libraries have classes of the same names, such as Request.
        foreach (PublicClasses::of(self::ROOT . '/src')->withOptions() as $class) {
            $classes[$class->getShortName()][] = $class;
        }
        $commands = [...\array_keys(Reference::all()), 'list', 'help'];
        $checked = 0;
        $all = new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator(self::ROOT . '/docs', \FilesystemIterator::SKIP_DOTS));
        foreach ($all as $file) {
            [$name, $page] = [$file->getBasename(), (string) \file_get_contents($file->getPathname())];
            \preg_match_all('/((?:\w+\\\\)*)\b([A-Z]\w+)::\$(\w+)/', $page, $properties, \PREG_SET_ORDER);
            foreach ($properties as [$text, $namespace, $class, $property]) {
                if (!isset($classes[$class]) || ($namespace !== '' && !\str_starts_with($namespace, 'Weft\\'))) {
                    // Of an example's own class, or of another library.
                    continue;
                }
                $having = \array_filter($classes[$class], static fn(\ReflectionClass $one): bool => $one->hasProperty($property));
                self::assertNotSame([], $having, "$name: $text");
                $checked++;
            }
            \preg_match_all('/`weft ([a-z]+(?::[a-z]+)?)(?=[ `])[^`]*`/', $page, $used);
            foreach ($used[1] as $command) {
                self::assertContains($command, $commands, $name);
                $checked++;
            }
        }
        self::assertGreaterThan(80, $checked);
    }

    /** Tables name options of groups by their path: `body.timeout` is `new Limits(body: new BodyLimits(timeout: …))`. */
    public function testEveryPathOfAnOptionInATableExists(): void
    {
        $roots = [\Weft\Http\Limits::class, \Weft\Grpc\Limits::class, \Weft\Pool\PoolOptions::class];
        $groups = [];
        foreach ($roots as $class) {
            foreach ((new \ReflectionMethod($class, '__construct'))->getParameters() as $parameter) {
                $type = $parameter->getType();
                if ($type instanceof \ReflectionNamedType && \class_exists($type->getName())) {
                    $groups[$parameter->getName()][] = $type->getName();
                }
            }
        }
        $checked = 0;
        foreach (['explanation/security', 'reference/http', 'reference/grpc', 'reference/pool', 'reference/sql'] as $name) {
            \preg_match_all('/`(' . \implode('|', \array_keys($groups)) . ')\.([a-z]\w+)`/', (string) \file_get_contents(self::ROOT . "/docs/$name.md"), $paths, \PREG_SET_ORDER);
            foreach ($paths as [$text, $group, $option]) {
                $having = \array_filter($groups[$group], static fn(string $class): bool => \property_exists($class, $option));
                self::assertNotSame([], $having, "docs/$name.md: $text");
                $checked++;
            }
        }
        self::assertGreaterThan(15, $checked);
    }

    public function testAPageIsAboutSomethingThatExists(): void
    {
        $known = \array_map(static fn(string $class): string => ErrorDocumentation::ofClass($class)->name, self::exceptions());
        foreach (\array_keys(self::pages()) as $name) {
            self::assertTrue(\in_array($name, $known, true) || \str_starts_with($name, 'doctor-'), "docs/errors/$name.md is about nothing that can be thrown");
        }
    }

    public function testAnExceptionThatNothingCatchesNamesItsPage(): void
    {
        $thrown = new PoolClosedException('pool "orders" is closed');

        self::assertStringEndsWith("\nHelp: weft explain pool-closed", (string) $thrown);
        self::assertSame('pool "orders" is closed', $thrown->getMessage());

        \putenv(ErrorDocumentation::ADDRESS . '=https://docs.example.com/weft/');
        self::assertStringEndsWith("\nHelp: https://docs.example.com/weft/errors/pool-closed/", (string) $thrown);
    }

    public function testTheTextOfEveryExceptionNamesItsPage(): void
    {
        foreach (self::exceptions() as $class) {
            $reflection = new \ReflectionClass($class);
            if ($reflection->isInstantiable() && $reflection->implementsInterface(\Weft\Exception::class)) {
                $thrown = $reflection->newInstanceWithoutConstructor();
                self::assertStringContainsString('Help: weft explain ' . ErrorDocumentation::ofClass($class)->name, (string) $thrown, $class);
            }
        }
    }

    public function testAnExceptionOfAnInternalClassHasThePageOfItsFamily(): void
    {
        $thrown = new \Weft\Cli\Internal\ProtoGenerationException('protoc is missing');

        self::assertSame('cli', ErrorDocumentation::of($thrown)?->name);
        self::assertNull(ErrorDocumentation::of(new \RuntimeException('not of Weft')));
    }

    /** @dataProvider formats */
    #[DataProvider('formats')]
    public function testTheLogNamesThePage(Format $format, string $expected): void
    {
        $stream = \fopen('php://memory', 'w+');
        (new StreamLogger($stream, $format))->error('Failed', ['exception' => new \LogicException('outer', 0, new PoolClosedException('pool "orders" is closed'))]);
        \rewind($stream);
        $written = (string) \stream_get_contents($stream);

        self::assertSame(1, \substr_count($written, 'pool-closed'), $written);
        self::assertStringContainsString($expected, $written);
    }

    /** @return iterable<array{Format, string}> */
    public static function formats(): iterable
    {
        yield 'text' => [Format::Text, "\n    Help: weft explain pool-closed\n"];
        yield 'JSON' => [Format::Json, '"help":"weft explain pool-closed"'];
    }

    public function testTheCommandExplainsANameAndAClass(): void
    {
        $byName = Weft::run(['explain', 'pool-exhausted']);
        $byClass = Weft::run(['explain', 'Weft\Pool\PoolExhaustedException']);

        self::assertSame(0, $byName->exitCode, $byName->errors);
        self::assertSame(self::page('pool-exhausted'), $byName->output);
        self::assertSame($byName->output, $byClass->output);
        self::assertSame(\array_keys(self::pages()), \explode("\n", \trim(Weft::run(['explain'])->output)));
    }

    public function testTheCommandExplainsAClassByTheNameWithoutItsNamespace(): void
    {
        $one = Weft::run(['explain', 'ListenException']);
        $two = Weft::run(['explain', 'ConnectionRefusedException']);

        self::assertSame([0, self::page('http-listen')], [$one->exitCode, $one->output], $one->errors);
        self::assertSame([0, self::page('amqp-connection-refused') . "\n" . self::page('sql-connection-refused')], [$two->exitCode, $two->output], $two->errors);
        self::assertSame(self::page('http-listen'), Weft::run(['explain', 'Http\ListenException'])->output);
    }

    public function testTheCommandSuggestsNamesForOneThatNoPageHas(): void
    {
        $weft = Weft::run(['explain', 'LeaseReturned']);

        self::assertSame(1, $weft->exitCode);
        self::assertSame("weft: There is no page about \"LeaseReturned\": `weft explain` lists all. Similar: pool-lease-returned\nHelp: weft explain cli-unknown-error\n", $weft->errors);
    }

    /** @return list<class-string<\Throwable>> */
    private static function exceptions(): array
    {
        // Bridges extend classes of their frameworks, which are loaded from the include path; nothing is made up in a test's process.
        ForeignClasses::register(standIns: false);
        $classes = \array_filter(PublicClasses::of(self::ROOT . '/src')->throwables(), static fn(\ReflectionClass $class): bool => !$class->isInterface());

        return \array_values(\array_map(static fn(\ReflectionClass $class): string => $class->getName(), $classes));
    }

    /** @return array<string, string> by name */
    private static function pages(): array
    {
        $pages = [];
        foreach (\glob(self::ROOT . '/docs/errors/*.md') ?: [] as $file) {
            $pages[\basename($file, '.md')] = (string) \file_get_contents($file);
        }
        unset($pages['index']);
        \ksort($pages);

        return $pages;
    }

    private static function page(string $name): string
    {
        self::assertFileExists(self::ROOT . "/docs/errors/$name.md");

        return (string) \file_get_contents(self::ROOT . "/docs/errors/$name.md");
    }
}
