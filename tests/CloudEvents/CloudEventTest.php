<?php

declare(strict_types=1);

namespace Weft\Tests\CloudEvents;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\CloudEvents\CloudEvent;
use Weft\CloudEvents\ContentMode;
use Weft\CloudEvents\InvalidCloudEventException;

/** CloudEvents 1.0: the JSON event format, and the HTTP protocol binding. */
final class CloudEventTest extends TestCase
{
    public function testAnEventWhoseJsonTakesTooMuchMemoryIsRefused(): void
    {
        $data = '[' . str_repeat('[0],', 1 << 20) . '0]';

        $events = [
            [['content-type' => 'application/json', 'ce-specversion' => '1.0', 'ce-id' => '1', 'ce-source' => '/', 'ce-type' => 't'], $data],
            [['content-type' => 'application/cloudevents+json'], '{"specversion":"1.0","id":"1","source":"/","type":"t","data":' . $data . '}'],
            [['content-type' => 'application/cloudevents+json'], '{"specversion":"1.0","id":"1","source":"/","type":"t","data_base64":"' . base64_encode($data) . '"}'],
        ];
        foreach ($events as [$headers, $body]) {
            try {
                CloudEvent::fromHttp($headers, $body);
                self::fail('it was decoded');
            } catch (InvalidCloudEventException $invalid) {
                self::assertStringStartsWith('The CloudEvent consists of too many small lists and objects: its 4.0 MiB would take 232 MiB', $invalid->getMessage());
            }
        }
    }

    public function testAnEventInBinaryModeHasItsAttributesAsFields(): void
    {
        $event = new CloudEvent('shop.order.placed', '/shop', new Placed(7, 'ä'), '1-2', new \DateTimeImmutable('2026-01-31T12:00:00.5+01:00'), 'orders/7', extensions: ['traceparent' => '00-a', 'attempt' => 2, 'sampled' => true]);

        self::assertSame([
            'content-type' => 'application/json',
            'ce-specversion' => '1.0',
            'ce-id' => '1-2',
            'ce-source' => '/shop',
            'ce-type' => 'shop.order.placed',
            'ce-time' => '2026-01-31T12:00:00.500000+01:00',
            'ce-subject' => 'orders/7',
            'ce-traceparent' => '00-a',
            'ce-attempt' => '2',
            'ce-sampled' => 'true',
        ], $event->headers());
        self::assertSame('{"id":7,"name":"ä"}', $event->body());
    }

    public function testAnEventInStructuredModeIsOneJsonObject(): void
    {
        $event = new CloudEvent('shop.order.placed', '/shop', ['id' => 7], '1', subject: 'ä', schema: 'https://shop.example/order', extensions: ['attempt' => 2, 'sampled' => false]);

        self::assertSame(['content-type' => 'application/cloudevents+json; charset=UTF-8'], $event->headers(ContentMode::Structured));
        self::assertSame('{"specversion":"1.0","id":"1","source":"/shop","type":"shop.order.placed","subject":"ä","datacontenttype":"application/json",'
            . '"dataschema":"https://shop.example/order","attempt":2,"sampled":false,"data":{"id":7}}', $event->body(ContentMode::Structured));
    }

    /** @dataProvider events */
    #[DataProvider('events')]
    public function testAnEventThatIsReadIsTheOneThatWasWritten(CloudEvent $event, ContentMode $mode): void
    {
        $read = CloudEvent::fromHttp($event->headers($mode), $event->body($mode));

        self::assertEquals($event, $read);
    }

    public function testTheDataOfAnEventThatWasReadIsSearchedOnce(): void
    {
        $data = '{"a":"' . \str_repeat('x', 4 << 20) . '"}';
        $event = CloudEvent::fromHttp(['content-type' => 'application/cloudevents+json'], '{"specversion":"1.0","id":"1","source":"/a","type":"b","data":' . $data . '}');
        $first = $event->body();
        self::assertSame(\md5($data), \md5($first));

        $before = \memory_get_usage();
        $second = $event->body();

        self::assertLessThan(1 << 20, \memory_get_usage() - $before, 'both are one string');
        self::assertSame(\md5($data), \md5($second));
    }

    /** @return iterable<string, array{CloudEvent, ContentMode}> */
    public static function events(): iterable
    {
        foreach (ContentMode::cases() as $mode) {
            yield "only what is required, {$mode->name}" => [new CloudEvent('a', '/b'), $mode];
            yield "an object, {$mode->name}" => [new CloudEvent('a', '/b', ['a' => [1, null, 1.5]], time: new \DateTimeImmutable('2026-01-31T12:00:00.123456Z')), $mode];
            yield "a list, {$mode->name}" => [new CloudEvent('a', '/b', [1, 2]), $mode];
            yield "a scalar, {$mode->name}" => [new CloudEvent('a', '/b', 'text in JSON'), $mode];
            yield "bytes, {$mode->name}" => [new CloudEvent('a', '/b', "\0\xff", contentType: 'application/octet-stream'), $mode];
            yield "XML, {$mode->name}" => [new CloudEvent('a', '/b', '<a/>', contentType: 'application/xml; charset=utf-8'), $mode];
            yield "characters that a field cannot have, {$mode->name}" => [new CloudEvent("a \"%\" \\ ä\u{1f600}\n", '/b,c;d', subject: '%20', extensions: ['e' => 'ü']), $mode];
        }
        yield 'extensions of other types, structured' => [new CloudEvent('a', '/b', extensions: ['number' => 5, 'flag' => true]), ContentMode::Structured];
    }

    public function testFieldsAreReadInTheFormsThatTheBindingAllows(): void
    {
        $event = CloudEvent::fromHttp(['CE-ID' => ['1'], 'ce-source' => '/b', 'Ce-Type' => '"a \"quoted\" string%21"', 'ce-specversion' => '1.0', 'ce-time' => '2026-01-31t12:00:00.123456789z', 'Content-Type' => 'application/vnd.shop+json', 'x-other' => '1', '123' => 'x'], '5');

        self::assertSame(['a "quoted" string!', '1', 5, 'application/vnd.shop+json', []], [$event->type, $event->id, $event->data, $event->contentType, $event->extensions]);
        self::assertSame('12:00:00.123456', $event->time?->format('H:i:s.u'));
    }

    public function testTheJsonOfOthersIsRead(): void
    {
        $json = '{"specversion":"1.0","id":"1","source":"/b","type":"a","data_base64":"AP8=","datacontenttype":"image/png","subject":null,"number":5}';

        $event = CloudEvent::fromHttp(['content-type' => 'Application/CloudEvents+JSON;charset=utf-8'], $json);

        self::assertSame(["\0\xff", 'image/png', null, ['number' => 5]], [$event->data, $event->contentType, $event->subject, $event->extensions]);
    }

    /** @dataProvider received */
    #[DataProvider('received')]
    public function testTheDataOfAnEventIsForwardedAsItWasRead(string $data, ContentMode $from, ContentMode $to): void
    {
        $headers = $from === ContentMode::Structured ? ['content-type' => 'application/cloudevents+json'] : ['content-type' => 'application/json', 'ce-specversion' => '1.0', 'ce-id' => '1', 'ce-source' => '/b', 'ce-type' => 'a'];
        $body = $from === ContentMode::Structured ? " { \"data\" : 1, \"list\":\"[\", \"specversion\":\"1.0\",\"id\":\"1\",\n\"d\\u0061ta\" :\t{$data}\n,\"source\":\"/b\",\"type\":\"a\"} " : $data;

        $forwarded = CloudEvent::fromHttp($headers, $body)->body($to);

        if ($to === ContentMode::Binary) {
            self::assertSame($data, $forwarded);
        } else {
            self::assertStringEndsWith(",\"data\":{$data}}", $forwarded);
            self::assertNotNull(\json_decode($forwarded));
        }
    }

    /** More of them than the patterns of PCRE can go back. */
    public function testAStringOfAMillionEscapesIsForwardedAsItWasRead(): void
    {
        $data = '{"text":"' . \str_repeat('\n', 1_000_001) . '}, x ,"}';
        $event = CloudEvent::fromHttp(['content-type' => 'application/cloudevents+json'], '{"specversion":"1.0","id":"1","source":"/b","type":"a","data":' . $data . '}');

        self::assertTrue($event->body(ContentMode::Binary) === $data);
    }

    /** @return iterable<string, array{string, ContentMode, ContentMode}> */
    public static function received(): iterable
    {
        foreach (['{"tags":{},"list":[],"0":{"0":1}}', '{}', '12345678901234567890', '{"big": 12345678901234567890, "n": 1.0, "small": 1e-400}', '"a \\"string\\", }"', '[[1,{"data":2}],"\\\\"]'] as $data) {
            foreach (ContentMode::cases() as $from) {
                foreach (ContentMode::cases() as $to) {
                    yield "{$data}, {$from->name} to {$to->name}" => [$data, $from, $to];
                }
            }
        }
    }

    public function testNullThatIsTheJsonOfAnEventIsForwarded(): void
    {
        $binary = CloudEvent::fromHttp(['content-type' => 'application/vnd.shop+json', 'ce-specversion' => '1.0', 'ce-id' => '1', 'ce-source' => '/b', 'ce-type' => 'a'], 'null');
        $structured = CloudEvent::fromHttp($binary->headers(ContentMode::Structured), $binary->body(ContentMode::Structured));

        foreach ([$binary, $structured] as $event) {
            self::assertNull($event->data);
            self::assertSame('null', $event->body());
            self::assertSame('application/vnd.shop+json', $event->headers()['content-type']);
            self::assertStringEndsWith('"datacontenttype":"application/vnd.shop+json","data":null}', $event->body(ContentMode::Structured));
        }
        $other = CloudEvent::fromHttp(['content-type' => 'application/cloudevents+json'], '{"specversion":"1.0","id":"1","source":"/b","type":"a","datacontenttype":"text/plain","data":null}');
        self::assertSame('', $other->body());
        self::assertArrayNotHasKey('content-type', $other->headers());
    }

    public function testJsonInBase64IsForwardedAsItWasRead(): void
    {
        $event = CloudEvent::fromHttp(['content-type' => 'application/cloudevents+json'], '{"specversion":"1.0","id":"1","source":"/b","type":"a","data_base64":"' . \base64_encode('{"a": {}}') . '"}');

        self::assertSame([['a' => []], '{"a": {}}'], [$event->data, $event->body()]);
    }

    public function testObjectsInArraysAreEncodedLikeThoseThatAreTheData(): void
    {
        $time = new \DateTimeImmutable('2026-01-31T12:00:00.5+01:00');
        $order = new Priced(7, $time);
        $json = '{"cents":7,"at":"2026-01-31T12:00:00.500000+01:00"}';

        self::assertSame($json, (new CloudEvent('a', '/b', $order))->body());
        self::assertSame("{\"order\":{$json},\"all\":[{$json}],\"object\":{\"order\":{$json}},\"at\":\"2026-01-31T12:00:00.500000+01:00\",\"none\":[],\"empty\":{}}", (new CloudEvent('a', '/b', [
            'order' => $order,
            'all' => [$order],
            'object' => (object) ['order' => $order],
            'at' => $time,
            'none' => [],
            'empty' => new \stdClass(),
        ]))->body());
        $cycle = ['order' => $order];
        $cycle['again'] = &$cycle;
        $cycle['twice'] = &$cycle;
        foreach ([$cycle, ['closure' => static fn() => 1]] as $data) {
            try {
                (new CloudEvent('a', '/b', $data))->body();
                self::fail('JSON has no cycles and no closures');
            } catch (\TypeError $error) {
                self::assertStringContainsString('JSON cannot represent', $error->getMessage());
            }
        }
    }

    /**
     * @dataProvider malformed
     *
     * @param array<string, string> $headers
     */
    #[DataProvider('malformed')]
    public function testAMalformedEventIsRefused(string $message, array $headers, string $body = ''): void
    {
        $this->expectException(InvalidCloudEventException::class);
        $this->expectExceptionMessage($message);

        CloudEvent::fromHttp($headers, $body);
    }

    /** @return iterable<string, array{0: string, 1: array<string, string>, 2?: string}> */
    public static function malformed(): iterable
    {
        $binary = ['ce-specversion' => '1.0', 'ce-id' => '1', 'ce-source' => '/b', 'ce-type' => 'a'];
        $structured = ['content-type' => 'application/cloudevents+json'];
        $json = '{"specversion":"1.0","id":"1","source":"/b","type":"a"';
        yield 'no event' => ['The message is not a CloudEvent: it has no specversion', ['content-type' => 'application/json'], '{}'];
        yield 'another version' => ['The specversion of the CloudEvent is 0.3, expected 1.0', ['ce-specversion' => '0.3'] + $binary];
        yield 'no id' => ['The CloudEvent has no id', ['ce-id' => ''] + $binary];
        yield 'no time' => ['The time of the CloudEvent is "now", expected a time of RFC 3339', $binary + ['ce-time' => 'now']];
        yield 'an impossible time' => ['expected a time of RFC 3339', $binary + ['ce-time' => '2026-13-31T12:00:00Z']];
        yield 'a day that does not exist' => ['The time of the CloudEvent is "2026-02-30T00:00:00Z", expected a time of RFC 3339', $binary + ['ce-time' => '2026-02-30T00:00:00Z']];
        yield 'a subject that is not UTF-8' => ['The attribute subject of the CloudEvent is not UTF-8', $binary + ['ce-subject' => '%ff']];
        yield 'an extension that is not UTF-8' => ['The attribute other of the CloudEvent is not UTF-8', $binary + ['ce-other' => "\xff"]];
        yield 'a content type that is not UTF-8' => ['The attribute datacontenttype of the CloudEvent is not UTF-8', $binary + ['content-type' => "text/\xff"], 'x'];
        yield 'data that is not JSON' => ['The CloudEvent is not valid JSON', $binary + ['content-type' => 'application/json'], '{'];
        yield 'an extension without a valid name' => ['"a-b" cannot be an extension', $binary + ['ce-a-b' => '1']];
        yield 'structured, not JSON' => ['The CloudEvent is not valid JSON', $structured, $json];
        yield 'structured, a list' => ['The CloudEvent is not a JSON object', $structured, '[1]'];
        yield 'structured, no type' => ['The CloudEvent has no type', $structured, '{"specversion":"1.0","id":"1","source":"/b"}'];
        yield 'structured, a number as id' => ['The attribute id of the CloudEvent is int, expected string', $structured, '{"specversion":"1.0","id":1}'];
        yield 'structured, an object as extension' => ['The attribute other of the CloudEvent is array, expected string', $structured, "$json,\"other\":{}}"];
        yield 'structured, not base64' => ['The data_base64 of the CloudEvent is not base64', $structured, "$json,\"data_base64\":\"?\"}"];
        yield 'structured, an object with another content type' => ['must be a string, got array', $structured, "$json,\"datacontenttype\":\"text/plain\",\"data\":{}}"];
        yield 'a batch' => ['The content type application/cloudevents-batch+json is not supported', ['content-type' => 'application/cloudevents-batch+json'], '[]'];
    }

    public function testDataIsDecodedToAClass(): void
    {
        $event = new CloudEvent('a', '/b', ['id' => 7, 'name' => 'x', 'more' => 1]);

        self::assertEquals(new Placed(7, 'x'), $event->decode(Placed::class));
        foreach ([['id' => 'seven', 'name' => 'x'], [1], 5, null] as $data) {
            $wrong = new CloudEvent('a', '/b', $data);
            try {
                $wrong->decode(Placed::class);
                self::fail('the data does not match');
            } catch (InvalidCloudEventException $invalid) {
                self::assertSame($wrong, $invalid->event);
            }
        }
    }

    /** @dataProvider mistakes */
    #[DataProvider('mistakes')]
    public function testMistakesAreNamed(string $message, \Closure $mistake): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage($message);

        $mistake();
    }

    /** @return iterable<string, array{string, \Closure}> */
    public static function mistakes(): iterable
    {
        yield 'no type' => ['The type of a CloudEvent must not be empty', static fn() => new CloudEvent('', '/b')];
        yield 'no source' => ['The source of a CloudEvent must not be empty', static fn() => new CloudEvent('a', '')];
        yield 'an offset with seconds' => ['must have an offset of whole minutes (RFC 3339), got 3208 s', static fn() => new CloudEvent('a', '/b', time: new \DateTimeImmutable('1890-06-01', new \DateTimeZone('Europe/Berlin')))];
        yield 'an extension in upper case' => ['"traceParent" cannot be an extension', static fn() => new CloudEvent('a', '/b', extensions: ['traceParent' => '1'])];
        yield 'an extension of the specification' => ['"subject" cannot be an extension', static fn() => new CloudEvent('a', '/b', extensions: ['subject' => '1'])];
        yield 'data that is no string' => ['The data of a CloudEvent with the content type "text/plain" must be a string, got int', static fn() => new CloudEvent('a', '/b', 5, contentType: 'text/plain')];
    }

    public function testEachEventHasAnIdOfItsOwn(): void
    {
        self::assertNotSame((new CloudEvent('a', '/b'))->id, (new CloudEvent('a', '/b'))->id);
    }
}

final class Placed
{
    public function __construct(public readonly int $id, public readonly string $name)
    {
    }
}

final class Priced
{
    public function __construct(private int $cents, private \DateTimeImmutable $at) {}
}
