<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Log\Format;
use Weft\Log\StreamLogger;
use Weft\Runtime\Internal\TraceSource;
use Weft\Runtime\Trace;

use function Weft\async;
use function Weft\run;

/** Spans of W3C Trace Context and the one of the current task. */
final class TraceTest extends TestCase
{
    private const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    private const STATE = 'vendor=value,other=1';

    public function testAChildHasTheTraceAndTheStateOfItsParentAndASpanOfItsOwn(): void
    {
        $trace = Trace::continue(self::PARENT, self::STATE);

        self::assertSame('0af7651916cd43dd8448eb211c80319c', $trace->traceId());
        self::assertNotSame('b7ad6b7169203331', $trace->spanId());
        self::assertMatchesRegularExpression('/^[\da-f]{16}$/', $trace->spanId());
        self::assertSame("00-{$trace->traceId()}-{$trace->spanId()}-01", $trace->traceparent);
        self::assertSame(['traceparent' => $trace->traceparent, 'tracestate' => self::STATE], $trace->headers());
        self::assertTrue($trace->isSampled());
        $child = $trace->child();
        self::assertSame([$trace->traceId(), self::STATE], [$child->traceId(), $child->tracestate]);
        self::assertNotSame($trace->spanId(), $child->spanId());
    }

    public function testATraceThatIsNotRecordedStaysSo(): void
    {
        self::assertFalse(Trace::continue('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00')->child()->isSampled());
    }

    /** @dataProvider unusable */
    #[DataProvider('unusable')]
    public function testWithoutAValidParentATraceBeginsAndTheStateIsDropped(?string $traceparent): void
    {
        $trace = Trace::continue($traceparent, self::STATE);

        self::assertMatchesRegularExpression('/^00-(?!0af765)[\da-f]{32}-[\da-f]{16}-01$/', $trace->traceparent);
        self::assertSame(['traceparent' => $trace->traceparent], $trace->headers());
    }

    /** @return iterable<string, array{?string}> */
    public static function unusable(): iterable
    {
        yield 'none' => [null];
        yield 'empty' => [''];
        yield 'upper case' => ['00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01'];
        yield 'no UTF-8' => ["\xff"];
        yield 'a tab at its end' => [self::PARENT . "\t"];
        yield 'no span' => ['00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01'];
    }

    public function testAStateOfMoreThanFourKibibytesIsDropped(): void
    {
        self::assertNotNull(Trace::continue(self::PARENT, \str_repeat('x', 4_096))->tracestate);
        self::assertNull(Trace::continue(self::PARENT, \str_repeat('x', 4_097))->tracestate);
    }

    public function testAStateThatIsNotPrintableAsciiIsDropped(): void
    {
        foreach (['a=é', "a=\xff", "a=1,\tb=2", "a=1\n", ''] as $state) {
            self::assertSame(['traceparent'], \array_keys(Trace::continue(self::PARENT, $state)->headers()));
        }
    }

    public function testTasksInheritTheCurrentSpanAndOthersDoNotSeeIt(): void
    {
        run(static function (): void {
            $trace = Trace::continue(self::PARENT);
            $beside = null;
            [$inside, $inherited] = $trace->run(static function () use (&$beside): array {
                return [Trace::current(), async(static fn(): ?Trace => Trace::current())->await()];
            });
            $beside = async(static fn(): ?Trace => Trace::current())->await();

            self::assertSame([$trace, $trace, null, null], [$inside, $inherited, $beside, Trace::current()]);
        });
    }

    public function testASourceIsAskedOnlyWhenSomebodyAsks(): void
    {
        $source = new class implements TraceSource {
            public int $asked = 0;

            public function trace(): Trace
            {
                $this->asked++;

                return Trace::named('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01');
            }
        };
        run(static function () use ($source): void {
            Trace::enter($source);
            self::assertSame(0, $source->asked);
            self::assertSame('b7ad6b7169203331', Trace::current()?->spanId());
        });
        self::assertSame(1, $source->asked);
    }

    public function testAJsonRecordNamesTheCurrentSpan(): void
    {
        $stream = \fopen('php://memory', 'w+');
        self::assertIsResource($stream);
        $logger = new StreamLogger($stream, Format::Json);
        $trace = Trace::continue(self::PARENT);
        $logger->info('before');
        $trace->run(static fn() => $logger->info('inside', ['order' => 7]));
        \rewind($stream);
        [$before, $inside] = \array_map(static fn(string $line): array => (array) \json_decode($line, true), \explode("\n", \trim((string) \stream_get_contents($stream))));

        self::assertArrayNotHasKey('trace_id', $before);
        self::assertSame(['trace_id' => $trace->traceId(), 'span_id' => $trace->spanId(), 'order' => 7], \array_slice($inside, 3));
    }
}
