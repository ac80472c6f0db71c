<?php

declare(strict_types=1);

namespace Weft\Tests\Log;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Log\Format;
use Weft\Log\StreamLogger;
use Weft\Runtime\Trace;
use Weft\Tests\Execution;

use function Weft\async;
use function Weft\run;

/** What a logger writes, above all of what it was given by somebody else. */
final class StreamLoggerTest extends TestCase
{
    private const FORMATS = [[Format::Text], [Format::Json]];
    /** More than a record may have. */
    private const LARGE = 110_000;

    public function testAProcessWithoutDescriptorsLogsItsFirstRecord(): void
    {
        $program = 'require $argv[1]; $logger = new Weft\Log\StreamLogger(STDOUT); posix_setrlimit(POSIX_RLIMIT_NOFILE, 3, 3);'
            . ' $logger->warning("{what} failed", ["what" => "accept", "peer" => ["a"], "exception" => new Exception("no descriptors")]);';
        $logged = Execution::of([PHP_BINARY, '-r', $program, \dirname(__DIR__, 2) . '/autoload.php']);

        self::assertSame(0, $logged->exitCode, $logged->output . $logged->errors);
        self::assertStringContainsString('accept failed {"peer":["a"]}', $logged->output);
        self::assertStringContainsString('no descriptors', $logged->output);
    }

    /** @return iterable<string, array{string, string}> */
    public static function unknownSettings(): iterable
    {
        yield 'format' => ['WEFT_LOG=xml', 'WEFT_LOG must be text or json, got "xml"'];
        yield 'level' => ['WEFT_LOG_LEVEL=bogus', 'WEFT_LOG_LEVEL must be debug, info, notice, warning, error, critical, alert or emergency, got "bogus"'];
    }

    /** @dataProvider unknownSettings */
    #[DataProvider('unknownSettings')]
    public function testAnUnknownValueInTheEnvironmentIsRefusedWithTheKnownOnes(string $setting, string $problem): void
    {
        $name = (string) strstr($setting, '=', true);
        $before = getenv($name);
        putenv($setting);
        try {
            StreamLogger::fromEnvironment();
            self::fail('accepted');
        } catch (\ValueError $error) {
            self::assertSame($problem, $error->getMessage());
        } finally {
            putenv($before === false ? $name : "$name=$before");
        }
    }

    /** @dataProvider formats */
    #[DataProvider('formats')]
    public function testAnExceptionIsNeverExpandedIntoAMessage(Format $format): void
    {
        $record = self::logged($format, 'no such item: {exception}', ['exception' => new \LogicException('the secret text')]);

        self::assertStringContainsString('no such item: {exception}', $record);
        self::assertSame(1, substr_count($record, 'the secret text'));
    }

    /** @dataProvider formats */
    #[DataProvider('formats')]
    public function testATemplateFullOfPlaceholdersStaysSmall(Format $format): void
    {
        $body = str_repeat('{exception}{error}', intdiv(self::LARGE, 18));
        $error = new \LogicException("no such item: $body", 0, new \LogicException($body));
        $before = memory_get_usage();
        memory_reset_peak_usage();

        $record = self::logged($format, "failed: $body", ['error' => $body, 'exception' => $error, 'list' => array_fill(0, 1_000, $body)]);

        self::assertLessThan(200_000, \strlen($record));
        self::assertLessThan(8_000_000, memory_get_peak_usage() - $before);
    }

    /** @dataProvider formats */
    #[DataProvider('formats')]
    public function testOnlyControlCharactersStaySmall(Format $format): void
    {
        $body = str_repeat("\x1b\u{202E}\xff", intdiv(self::LARGE, 5));

        $record = self::logged($format, $body, ['a' => $body, 'b' => [$body, [$body]], 'exception' => new \LogicException($body)]);

        self::assertLessThan(600_000, \strlen($record));
    }

    /** @dataProvider formats */
    #[DataProvider('formats')]
    public function testAContextOfAnyDepthAndWidthStaysSmall(Format $format): void
    {
        $deep = [];
        for ($n = 0; $n < 10_000; $n++) {
            $deep = [$deep, $n];
        }
        $wide = array_fill(0, 100, array_fill(0, 100, array_fill(0, 100, '')));
        $itself = new \stdClass();
        $itself->self = [$itself, $itself];

        $record = self::logged($format, 'large', ['deep' => $deep, 'wide' => $wide, 'self' => $itself, str_repeat('k', self::LARGE) => 1]);

        self::assertLessThan(100_000, \strlen($record));
    }

    /** @dataProvider formats */
    #[DataProvider('formats')]
    public function testALongValueIsCutBetweenCharactersAndItsLengthIsNamed(Format $format): void
    {
        $record = self::logged($format, '{value}', ['value' => str_repeat('é', 55_000)]);

        self::assertStringContainsString('é… (110000 bytes)', $record);
        self::assertSame(1, preg_match('//u', $record));
    }

    /** @dataProvider formats */
    #[DataProvider('formats')]
    public function testPreviousExceptionsAreWrittenWithTheirPlaces(Format $format): void
    {
        $cause = new \RuntimeException('the disk is full');
        $place = __FILE__ . ':' . (__LINE__ - 1);

        $record = self::logged($format, 'failed', ['exception' => new \LogicException('not saved', 0, new \LogicException('not written', 0, $cause))]);

        foreach (['not saved', 'not written', 'the disk is full', $place] as $text) {
            self::assertStringContainsString($text, $record);
        }
    }

    public function testInTextPreviousExceptionsFollowInTheirOrder(): void
    {
        $record = self::logged(Format::Text, 'failed', ['exception' => new \LogicException('outer', 0, new \RuntimeException('inner'))]);

        self::assertMatchesRegularExpression('~failed\n    LogicException: outer at .*\n(    #.*\n)+    Previous: RuntimeException: inner at .*\n(    #.*\n)+$~', $record);
    }

    /** The exceptions of NAN in a result, say: Weft names the place of the value in a second one. */
    public function testInTextAPreviousExceptionThatIsRepeatedIsOneLineWithoutItsStack(): void
    {
        $cause = static fn(): \RuntimeException => new \RuntimeException('no space');
        $both = static fn(): array => [$inner = $cause(), new \LogicException('not saved: no space', 0, $inner)];
        [$inner, $outer] = $both();
        foreach ([$inner, $outer] as $error) {
            (new \ReflectionProperty(\Exception::class, 'line'))->setValue($error, 7);
        }

        self::assertMatchesRegularExpression('~\n(    #.*\n)+    Previous: RuntimeException: no space at .*:7\n$~', self::logged(Format::Text, 'failed', ['exception' => $outer]));
        (new \ReflectionProperty(\Exception::class, 'line'))->setValue($inner, 8);
        self::assertMatchesRegularExpression('~\n(    #.*\n)+    Previous: RuntimeException: no space at .*:8\n(    #.*\n)+$~', self::logged(Format::Text, 'failed', ['exception' => $outer]));
    }

    public function testInTextAFieldWithoutAValueIsLeftOut(): void
    {
        self::assertStringEndsWith("info    ended\n", self::logged(Format::Text, 'ended', ['signal' => null]));
        self::assertStringContainsString('"signal":null', self::logged(Format::Json, 'ended', ['signal' => null]));
    }

    /** @dataProvider formats */
    #[DataProvider('formats')]
    public function testExceptionsThatCauseEachOtherEnd(Format $format): void
    {
        $first = new \LogicException('first');
        $second = new \LogicException('second', 0, $first);
        (new \ReflectionProperty(\Exception::class, 'previous'))->setValue($first, $second);

        $record = self::logged($format, 'failed', ['exception' => $first]);

        self::assertSame([1, 1], [substr_count($record, 'LogicException: first') ?: substr_count($record, '"first"'), substr_count($record, 'second')]);
    }

    /** @dataProvider formats */
    #[DataProvider('formats')]
    public function testAStackShowsTheFramesOfTheApplicationAndCountsThoseOfWeft(Format $format): void
    {
        $error = null;
        try {
            run(static fn() => async(self::fails(...))->await());
        } catch (\LogicException $error) {
        }

        $record = self::logged($format, 'failed', ['exception' => $error]);

        self::assertStringContainsString(__CLASS__ . '::fails()', str_replace('\\\\', '\\', $record));
        self::assertMatchesRegularExpression('~… \d+ frames of Weft~', $record);
        self::assertStringNotContainsString('Coroutine', $record);
    }

    /** @dataProvider formats */
    #[DataProvider('formats')]
    public function testAStackOfWeftAloneIsShown(Format $format): void
    {
        $error = new \LogicException('broken');
        (new \ReflectionProperty(\Exception::class, 'trace'))->setValue($error, [['file' => \dirname(__DIR__, 2) . '/src/App.php', 'line' => 7, 'function' => 'serve', 'class' => 'Weft\App', 'type' => '->']]);

        self::assertStringContainsString('src/App.php(7): Weft\App->serve()', str_replace('\\\\', '\\', self::logged($format, 'failed', ['exception' => $error])));
    }

    /** @dataProvider formats */
    #[DataProvider('formats')]
    public function testAStackHasNoArguments(Format $format): void
    {
        $error = null;
        try {
            (static fn(string $password) => throw new \LogicException('broken'))('hunter2');
        } catch (\LogicException $error) {
        }

        self::assertStringNotContainsString('hunter2', self::logged($format, 'failed', ['exception' => $error]));
    }

    /** @dataProvider formats */
    #[DataProvider('formats')]
    public function testADeepRecursionIsFiftyFrames(Format $format): void
    {
        $error = null;
        try {
            self::recurse(5_000);
        } catch (\LogicException $error) {
        }

        $record = self::logged($format, 'failed', ['exception' => $error]);

        self::assertSame(50, substr_count($record, 'recurse()'));
        self::assertMatchesRegularExpression('~… \d{4} more frames~', $record);
    }

    /**
     * @dataProvider formats
     */
    #[DataProvider('formats')]
    public function testControlCharactersAreEscaped(Format $format): void
    {
        $evil = "a\rb\x1b[2Jc\u{9b}31md\u{202e}e\u{2066}f\x7fg\x9bh\u{200f}";

        $record = self::logged($format, "in $evil", ['value' => $evil, 'exception' => new \LogicException($evil)]);

        self::assertSame(0, preg_match('/[\x{00}-\x{09}\x{0B}-\x{1F}\x{7F}-\x{9F}\x{200F}\x{202A}-\x{202E}\x{2066}-\x{2069}]/u', $record), json_encode($record));
        self::assertSame(1, preg_match('//u', $record));
        $format === Format::Text && self::assertStringContainsString('a\rb\x1B[2Jc\u{009B}31md\u{202E}e\u{2066}f\x7Fg\x9Bh\u{200F}', $record);
    }

    public function testATextRecordCannotLookLikeTwo(): void
    {
        $forged = "x\n2026-01-01T00:00:00.000Z info  forged";

        $lines = explode("\n", rtrim(self::logged(Format::Text, $forged, ['value' => $forged, 'exception' => new \LogicException($forged)])));

        self::assertSame([], preg_grep('/^    /', \array_slice($lines, 1), PREG_GREP_INVERT));
    }

    public function testAJsonRecordIsOneLineThatCanBeDecoded(): void
    {
        $record = self::logged(Format::Json, "a\nb\x9b\u{202e}", ['value' => "\u{9b}\x7f", 'exception' => new \LogicException('c')]);

        self::assertSame(1, substr_count($record, "\n"));
        $fields = json_decode($record, true, flags: JSON_THROW_ON_ERROR);
        self::assertSame(["\u{9b}\x7f", 'LogicException', 'c'], [$fields['value'], $fields['exception']['class'], $fields['exception']['message']]);
    }

    public function testAContextKeyWithTheNameOfAFieldOfTheRecordIsKept(): void
    {
        $record = self::logged(Format::Json, 'upstream failed', ['message' => 'invalid token', 'level' => 7, 'time' => 12.5, 'context.time' => 'too', 'trace_id' => 'none is known']);

        $fields = json_decode($record, true, flags: JSON_THROW_ON_ERROR);
        self::assertSame(['info', 'upstream failed'], [$fields['level'], $fields['message']]);
        self::assertMatchesRegularExpression('/^\d{4}-\d\d-\d\dT/', $fields['time']);
        unset($fields['time'], $fields['level'], $fields['message']);
        self::assertSame(
            ['context.message' => 'invalid token', 'context.level' => 7, 'context.context.time' => 12.5, 'context.time' => 'too', 'trace_id' => 'none is known'],
            $fields,
        );
    }

    public function testATraceIdOfTheContextDoesNotReplaceTheOneOfTheRequest(): void
    {
        $fields = [];
        run(static function () use (&$fields): void {
            Trace::continue('00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01')->run(static function () use (&$fields): void {
                $fields = json_decode(self::logged(Format::Json, 'handled', ['trace_id' => 'from the client', 'span_id' => Trace::current()?->spanId()]), true, flags: JSON_THROW_ON_ERROR);
            });
        });

        self::assertSame(['4bf92f3577b34da6a3ce929d0e0e4736', 'from the client'], [$fields['trace_id'], $fields['context.trace_id']]);
        self::assertArrayNotHasKey('context.span_id', $fields, 'the same id is not repeated');
    }

    /** @dataProvider formats */
    #[DataProvider('formats')]
    public function testNumbersThatJsonDoesNotHaveAreText(Format $format): void
    {
        self::assertStringContainsString('"a":"INF","b":"-INF","c":["NAN"],"d":1.5', self::logged($format, 'ratios', ['a' => INF, 'b' => -INF, 'c' => [NAN], 'd' => 1.5]));
    }

    public function testPlaceholdersAreFilledAndTheRestFollows(): void
    {
        $record = self::logged(Format::Text, '{a} {b} {none} {list}', ['a' => 1.5, 'b' => true, 'list' => [1], 'rest' => new \DateTimeImmutable('2026-01-01T00:00:00Z')]);

        self::assertStringEndsWith("info    1.5 true {none} {list} {\"list\":[1],\"rest\":\"2026-01-01T00:00:00.000+00:00\"}\n", $record);
    }

    public function testAFilledInValueIsNotReadForPlaceholders(): void
    {
        self::assertStringEndsWith("info    {b}\n", self::logged(Format::Text, '{a}', ['a' => '{b}']));
    }

    public function testObjectsThatThrowAreNamed(): void
    {
        $stringable = new class () {
            public function __toString(): string
            {
                throw new \LogicException('no text');
            }
        };
        $serializable = new class () implements \JsonSerializable {
            public function jsonSerialize(): mixed
            {
                throw new \LogicException('no data');
            }
        };

        $record = self::logged(Format::Text, '{a}', ['a' => $stringable, 'b' => $serializable]);

        self::assertStringContainsString('class@anonymous (unreadable: LogicException) {"b":"JsonSerializable@anonymous (unreadable: LogicException)"}', $record);
    }

    /** @return list<array{Format}> */
    public static function formats(): array
    {
        return self::FORMATS;
    }

    private static function fails(): never
    {
        throw new \LogicException('broken');
    }

    private static function recurse(int $depth): void
    {
        $depth === 0 ? throw new \LogicException('deep') : self::recurse($depth - 1);
    }

    /** @param array<array-key, mixed> $context */
    private static function logged(Format $format, string $message, array $context): string
    {
        $stream = fopen('php://memory', 'w+');
        (new StreamLogger($stream, $format))->info($message, $context);
        rewind($stream);

        return (string) stream_get_contents($stream);
    }
}
