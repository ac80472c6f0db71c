<?php

declare(strict_types=1);

namespace Weft\Tests\Site;

use PHPUnit\Framework\TestCase;
use Weft\Site\DocBlock;
use Weft\Site\ForeignClasses;
use Weft\Site\Metrics;
use Weft\Site\Names;
use Weft\Site\PublicClasses;
use Weft\Site\Reference;
use Weft\Site\Signature;

require_once __DIR__ . '/../../site/autoload.php';

/** The generated reference has everything that users can name, and every option says what it needs to say. */
final class ReferenceTest extends TestCase
{
    private const ROOT = __DIR__ . '/../..';
    /** What a number counts, or in which unit it is. */
    private const UNITS = '/\b(seconds?|milliseconds?|bytes|nanoseconds|MiB|fraction|factor|share|part|probability|Unix time|how (many|often)|number|maximum|minimum|level|version|status|priority|connections|calls|requests|streams|watches|messages|deliveries|failures|retries|rounds|items|values|resources|realms)\b/i';
    /** Between which values it may be. */
    private const RANGE = '/int<|positive-int|\bat least\b|\babove\b|\bbelow\b|\bat most\b|\bup to\b|\b\d+ to \d+|\d…\d|0: |\bfrom \d|\bany number|\b4 or 5/';

    /** When to change an option, or why it is there to be given. */
    private const ADVICE = '/(?:^|[.;:,] )(?:Set|Raise|Lower|Change|Disable|Use|Switch|List|Name|Only|For)\b/';

    /** @var array<string, string> by file name */
    private static array $pages;
    private static PublicClasses $classes;

    public static function setUpBeforeClass(): void
    {
        ForeignClasses::register(standIns: false);
        self::$classes = PublicClasses::of(self::ROOT . '/src');
        self::$pages = (new Reference(self::ROOT, self::$classes))->pages();
    }

    public function testEveryPublicClassHasASection(): void
    {
        self::assertGreaterThan(300, \count(self::$classes->all));
        foreach (self::$classes->all as $class) {
            $where = Signature::isGenerated($class) ? "`{$class->getName()}`" : "\n## {$class->getShortName()} {";
            self::assertStringContainsString($where, self::$pages[Signature::isGenerated($class) ? 'generated.md' : Names::page($class->getNamespaceName())]);
        }
    }

    public function testEveryPublicMethodHasASection(): void
    {
        foreach (self::$classes->all as $class) {
            if (Signature::isGenerated($class)) {
                continue;
            }
            foreach ($class->getMethods(\ReflectionMethod::IS_PUBLIC) as $method) {
                if ($method->getFileName() === $class->getFileName() && $method->class === $class->getName() && Signature::isShown($method)) {
                    self::assertStringContainsString("{: #{$class->getShortName()}.{$method->getName()} }", self::$pages[Names::page($class->getNamespaceName())]);
                }
            }
        }
    }

    public function testEveryFunctionHasASection(): void
    {
        foreach (['run', 'async', 'timeout', 'all', 'any', 'race', 'delay', 'scope', 'shield', 'signal', 'tasks', 'yieldNow', 'detach', 'current', 'suppressed'] as $name) {
            self::assertStringContainsString("\n## $name() {", self::$pages['weft.md']);
        }
    }

    public function testEveryExceptionIsInTheTable(): void
    {
        foreach (self::$classes->throwables() as $class) {
            self::assertStringContainsString('`' . \substr($class->getName(), 5) . '`', self::$pages['exceptions.md']);
        }
    }

    public function testEveryOptionIsInTheTable(): void
    {
        $count = 0;
        foreach (self::$classes->withOptions() as $class) {
            $section = \explode("\n### ", (string) \strstr(self::$pages['options.md'], "#{$class->getShortName()}-" . \md5($class->getName()) . ' }'))[0];
            foreach (Signature::options($class) as $parameter) {
                self::assertStringContainsString("| `\${$parameter->getName()}` |", $section, $class->getName());
                $count++;
            }
        }
        self::assertGreaterThan(200, $count);
    }

    public function testEveryOptionSaysWhatItIs(): void
    {
        $silent = [];
        foreach (self::options() as $name => [, $text]) {
            $text !== '' || $silent[] = $name;
        }

        self::assertSame([], $silent, 'These options have no text in the PHPDoc of their constructor');
    }

    public function testEveryNumberHasAUnitAndARange(): void
    {
        $unclear = [];
        foreach (self::options() as $name => [$type, $text, $isNumber]) {
            if ($isNumber && \preg_match(self::UNITS, $text) !== 1) {
                $unclear[] = "unit: $name: $text";
            }
            if ($isNumber && \preg_match(self::RANGE, "$type $text") !== 1) {
                $unclear[] = "range: $name: $text";
            }
        }

        self::assertSame([], $unclear, 'These options do not say in which unit they are or between which values');
    }

    public function testEveryOptionOfAnOptionsClassSaysWhenToChangeIt(): void
    {
        $silent = [];
        $classes = self::optionsClasses();
        $groups = \array_map(static fn(\ReflectionClass $class): string => $class->getName(), $classes);
        foreach (self::options($classes) as $name => [, $text, , $native]) {
            // A group has its own options, which say it.
            \in_array($native, $groups, true) || \preg_match(self::ADVICE, $text) === 1 || $silent[] = "$name: $text";
        }

        self::assertSame([], $silent, 'These options do not say when to change them');
    }

    public function testEveryMetricOfTheSourcesIsInTheTable(): void
    {
        $metrics = Metrics::of(self::ROOT);
        \exec('grep -rhoE "weft_[a-z_]+(_total|_seconds|_bytes)\b" ' . \escapeshellarg(self::ROOT . '/crates/core/src') . ' ' . \escapeshellarg(self::ROOT . '/src'), $names);
        // The example of a rustdoc.
        $names = \array_diff(\array_unique($names), ['weft_doc_requests_total', 'weft_doc_seconds']);
        self::assertGreaterThan(20, \count($names));
        foreach ($names as $name) {
            self::assertArrayHasKey($name, $metrics);
            self::assertStringContainsString("| `$name` | {$metrics[$name]['kind']} | {$metrics[$name]['help']} |", self::$pages['metrics.md']);
        }
    }

    public function testEveryMetricIsExplainedWhereOperatorsLook(): void
    {
        $page = (string) \file_get_contents(self::ROOT . '/docs/reference/operations.md');
        foreach (\array_keys(Metrics::of(self::ROOT)) as $name) {
            self::assertSame(1, \preg_match_all("/^\\|[^|]*`$name`[^|]*\\| (counter|gauge|histogram) \\|/m", $page, $rows), "$name has one row");
        }
    }

    public function testEveryEnvironmentVariableIsInItsTable(): void
    {
        $page = (string) \file_get_contents(self::ROOT . '/docs/reference/environment.md');
        $sources = \implode(' ', \array_map(\escapeshellarg(...), [self::ROOT . '/src', self::ROOT . '/crates/core/src/workers', self::ROOT . '/crates/ext/src']));
        \exec("grep -rhoE \"['\\\"]WEFT_[A-Z_]+['\\\"]\" {$sources}", $names);
        $names = \array_unique(\array_map(static fn(string $name): string => \trim($name, "'\""), $names));
        self::assertGreaterThan(10, \count($names));
        foreach ($names as $name) {
            self::assertStringContainsString("`{$name}`", $page);
        }
    }

    public function testEveryLinkOfTheReferenceLeadsToAPage(): void
    {
        foreach (self::$pages as $file => $page) {
            \preg_match_all('/\]\(([^)#\s]+)(?:#([^)\s]+))?\)/', $page, $links, \PREG_SET_ORDER);
            foreach ($links as $link) {
                if (\str_starts_with($link[1], '../')) {
                    // The directory of the generated pages is not there.
                    self::assertFileExists(self::ROOT . '/docs/reference/' . \substr($link[1], 3), $file);
                } else {
                    self::assertArrayHasKey($link[1], self::$pages, $file);
                    self::assertTrue(!isset($link[2]) || \str_contains(self::$pages[$link[1]], "{: #$link[2] }"), "$file: $link[0]");
                }
            }
        }
    }

    /** @return list<\ReflectionClass<object>> classes named after options or limits, and the groups in them */
    private static function optionsClasses(): array
    {
        $known = $found = [];
        foreach (self::$classes->withOptions() as $class) {
            $known[$class->getName()] = $class;
        }
        $open = \array_keys(\array_filter($known, static fn(string $name): bool => \preg_match('/(Options|Limits)$/D', $name) === 1, \ARRAY_FILTER_USE_KEY));
        while ($open !== []) {
            $class = $found[$name = \array_pop($open)] = $known[$name];
            foreach (Signature::options($class) as $parameter) {
                $type = (string) $parameter->getType();
                isset($known[$type]) && !isset($found[$type]) && $open[] = $type;
            }
        }

        return \array_values($found);
    }

    /**
     * @param list<\ReflectionClass<object>>|null $classes all by default
     *
     * @return array<string, array{string, string, bool, string}> type and text in PHPDoc, whether it is a number, and PHP's type, by class and
     *     parameter
     */
    private static function options(?array $classes = null): array
    {
        $options = [];
        foreach ($classes ?? self::$classes->withOptions() as $class) {
            $constructor = $class->getConstructor();
            $comment = DocBlock::of($constructor === null ? false : $constructor->getDocComment());
            foreach (Signature::options($class) as $parameter) {
                $documented = $comment->parameter($parameter->getName());
                $own = $parameter->isPromoted() ? DocBlock::of($class->getProperty($parameter->getName())->getDocComment())->text : '';
                $isNumber = \preg_match('/\b(int|float)\b/', (string) $parameter->getType()) === 1;
                $options["{$class->getName()}::\${$parameter->getName()}"] = [$documented['type'], $documented['text'] ?: $own, $isNumber, (string) $parameter->getType()];
            }
        }

        return $options;
    }
}
