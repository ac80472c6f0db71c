<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\Context;
use Weft\Bus\DeadLetter;
use Weft\Bus\EnvelopeSerializer;
use Weft\Bus\EventListener;
use Weft\Bus\Header;
use Weft\Bus\InvalidMessageClassError;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\MessageEncodingException;
use Weft\Bus\MessageOptions;
use Weft\Bus\MessageType;
use Weft\Bus\QueryHandler;
use Weft\Bus\Route;
use Weft\Bus\SerializedBy;
use Weft\Bus\Serializer;
use Weft\Bus\Serializer\CloudEvents;
use Weft\CloudEvents\ContentMode;
use Weft\Bus\Serializer\Envelope;
use Weft\Bus\Serializer\HeaderMapping;
use Weft\Bus\Serializer\Json;
use Weft\Bus\Serializer\Normalizer;
use Weft\Bus\Serializer\PhpServiceBus;
use Weft\Bus\Serializer\RawBytes;
use Weft\Bus\Serializer\SymfonyMessenger;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\UnknownMessageTypeException;
use Weft\Bus\Unrecoverable;
use Weft\Bus\Upcaster;
use Weft\Testing\TestBus;
use Weft\Tests\Protobuf\Generated\Api\GetUserRequest;
use Weft\Tests\Protobuf\Generated\Api\User;

use function Weft\async;

/** Formats of messages other than the bus's JSON: what they write, what they read, and what is in none of them. */
final class SerializerTest extends BusTestCase
{
    private const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    private const ID = '0199d6c1-8f3a-7c52-9d1e-5b0c7a4e2f10';

    /** @dataProvider formats */
    #[DataProvider('formats')]
    public function testAMessageComesBackAsItWasSent(Serializer $serializer): void
    {
        $this->inRuntime(function () use ($serializer): void {
            $placed = new OrderPlaced('o-1', [new OrderLine('sku', 2)], new \DateTimeImmutable('2026-03-04T05:06:07.000089+02:00'));
            [$received, $context] = self::received([OrderPlaced::class => $serializer], [], $placed);

            self::assertEquals($placed, $received);
            self::assertSame($serializer->contentType(), \explode(';', (string) $context?->header(Header::CONTENT_TYPE))[0]);
            self::assertMatchesRegularExpression('/^[\da-f-]{36}$/', (string) $context?->messageId());
        });
    }

    /** @return iterable<string, array{Serializer}> */
    public static function formats(): iterable
    {
        yield 'JSON' => [new Json()];
        yield 'CloudEvents, binary' => [new CloudEvents('/shop')];
        yield 'CloudEvents, structured' => [new CloudEvents('/shop', ContentMode::Structured)];
        yield 'CloudEvents with data in another format' => [new CloudEvents('/shop', ContentMode::Structured, new Reversed())];
        yield 'Symfony' => [new SymfonyMessenger()];
        yield 'php-service-bus 5' => [new PhpServiceBus()];
        yield 'php-service-bus 4' => [new PhpServiceBus(version: 4)];
        yield 'mapped headers' => [new HeaderMapping(new Json(), type: 'event', headers: [Header::MESSAGE_ID => 'x-id'])];
        yield 'a format of the application' => [new Reversed()];
    }

    public function testAGeneratedClassOfProtocolBuffersIsAMessageWithoutMore(): void
    {
        $this->inRuntime(function (): void {
            $broker = new Memory();
            $seen = [];
            $listener = new class (static function (User $user, Context $context) use (&$seen): void {
                $seen = [$user, $context->type(), $context->header(Header::CONTENT_TYPE)];
            }) {
                public function __construct(private readonly \Closure $note) {}

                #[EventListener]
                public function seen(User $user, Context $context): void
                {
                    ($this->note)($user, $context);
                }
            };
            $bus = Bus::connect($broker)->handlers($listener);
            $bus->queue(self::QUEUE)->declare();
            $user = new User();
            $user->name = "Zoë\0";
            $bus->publish($user);
            self::drain($bus);

            self::assertEquals([$user, 'api.User', 'application/protobuf'], $seen);

            // Programs in other languages rarely name a content type.
            $broker->publish([new Outgoing('api.User', \Weft\Protobuf\Codec::encode($user), [])]);
            $seen = [];
            self::drain($bus);
            self::assertEquals($user, $seen[0] ?? null);

            $broker->publish([new Outgoing('api.User', "\xFF\xFF", [])]);
            self::drain($bus);
            self::assertSame(MessageDecodingException::class, $bus->queue(self::QUEUE)->deadLetters()->peek()[0]->errorClass());
        });
    }

    public function testRawBytesAreTheBodyAndAnyBytes(): void
    {
        $this->inRuntime(function (): void {
            $thumbnail = new Thumbnail("\x89PNG\xFF\x00");
            [$received, $context, $sent] = self::received([], [], $thumbnail, Thumbnail::class);

            self::assertEquals($thumbnail, $received);
            self::assertSame("\x89PNG\xFF\x00", $sent?->body);
            self::assertSame('image/png', $context?->header(Header::CONTENT_TYPE));
        });
    }

    public function testACloudEventInBinaryModeHasItsAttributesAsHeaders(): void
    {
        $this->inRuntime(function (): void {
            [, , $sent] = self::received([OrderPlaced::class => new CloudEvents('/shop')], [], self::order());

            self::assertSame('{"id":"o-1","lines":[],"at":"2026-01-02T03:04:05.000000+00:00"}', $sent?->body);
            $headers = $sent->headers ?? [];
            self::assertSame('1.0', $headers['cloudEvents_specversion']);
            self::assertSame('/shop', $headers['cloudEvents_source']);
            self::assertSame('shop.order.placed', $headers['cloudEvents_type']);
            self::assertSame($headers[Header::MESSAGE_ID], $headers['cloudEvents_id']);
            self::assertSame('application/json', $headers[Header::CONTENT_TYPE]);
            self::assertMatchesRegularExpression('/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/', $headers['cloudEvents_time']);
            self::assertArrayNotHasKey('cloudEvents_datacontenttype', $headers);
        });
    }

    public function testACloudEventInStructuredModeIsOneJsonObject(): void
    {
        $this->inRuntime(function (): void {
            [, , $sent] = self::received([OrderPlaced::class => new CloudEvents('/shop', ContentMode::Structured)], [], self::order());

            $event = \json_decode((string) $sent?->body, true);
            self::assertSame('application/cloudevents+json; charset=UTF-8', $sent?->headers[Header::CONTENT_TYPE]);
            self::assertSame(['1.0', '/shop', 'shop.order.placed', 'application/json'], [$event['specversion'], $event['source'], $event['type'], $event['datacontenttype']]);
            self::assertSame(['id' => 'o-1', 'lines' => [], 'at' => '2026-01-02T03:04:05.000000+00:00'], $event['data']);
            self::assertSame($sent->headers[Header::MESSAGE_ID], $event['id']);
        });
    }

    /**
     * @dataProvider events
     *
     * @param array<string, string> $headers
     */
    #[DataProvider('events')]
    public function testCloudEventsOfOthersAreReadInEveryForm(string $body, array $headers, string $id): void
    {
        $this->inRuntime(function () use ($body, $headers, $id): void {
            [$received, $context] = self::read([new CloudEvents('/shop')], new Outgoing('any key', $body, $headers));

            self::assertEquals(new OrderPlaced('o-9', [], new \DateTimeImmutable('2026-01-02T03:04:05Z')), $received);
            self::assertSame($id, $context?->messageId());
            self::assertSame('/erp', $context->header('cloudEvents_source'));
            self::assertSame('0af7651916cd43dd8448eb211c80319c', $context->trace()->traceId());
            self::assertSame(['correlation'], [$context->correlationId()]);
        });
    }

    /** @return iterable<string, array{string, array<string, string>, string}> */
    public static function events(): iterable
    {
        $data = ['id' => 'o-9', 'lines' => [], 'at' => '2026-01-02T03:04:05Z'];
        $attributes = ['specversion' => '1.0', 'id' => self::ID, 'source' => '/erp', 'type' => 'shop.order.placed', 'traceparent' => self::TRACE, 'correlationid' => 'correlation'];
        $binary = static fn(string $prefix, array $attributes): array => \array_combine(\array_map(static fn(string $name): string => $prefix . $name, \array_keys($attributes)), $attributes);
        yield 'binary' => [(string) \json_encode($data), $binary('cloudEvents_', $attributes) + [Header::CONTENT_TYPE => 'application/json'], '/erp ' . self::ID];
        yield 'binary, with a header whose name is a number' => [(string) \json_encode($data), $binary('cloudEvents_', $attributes) + ['123' => 'x', Header::CONTENT_TYPE => 'application/json'], '/erp ' . self::ID];
        yield 'binary, with colons and without a content type' => [(string) \json_encode($data), $binary('cloudEvents:', $attributes), '/erp ' . self::ID];
        yield 'binary, with an id that is not a UUID' => [(string) \json_encode($data), $binary('cloudEvents:', ['id' => '17'] + $attributes), '/erp 17'];
        $structured = [Header::CONTENT_TYPE => 'application/cloudevents+json; charset=utf-8'];
        yield 'structured' => [(string) \json_encode($attributes + ['datacontenttype' => 'application/json', 'data' => $data, 'subject' => null]), $structured, '/erp ' . self::ID];
        yield 'structured, without the content type of the data' => [(string) \json_encode($attributes + ['data' => $data]), $structured, '/erp ' . self::ID];
        yield 'structured, with base64' => [(string) \json_encode($attributes + ['data_base64' => \base64_encode((string) \json_encode($data))]), $structured, '/erp ' . self::ID];
        yield 'structured, with data that is a string' => [(string) \json_encode($attributes + ['datacontenttype' => 'text/plain', 'data' => \json_encode($data)]), $structured, '/erp ' . self::ID];
    }

    public function testABatchOfCloudEventsIsRefusedAsOne(): void
    {
        $this->expectException(MessageDecodingException::class);
        $this->expectExceptionMessage('batches of events (application/cloudevents-batch+json) are not read');
        (new CloudEvents('/shop'))->open(new Envelope('', '[]', [Header::CONTENT_TYPE => 'application/cloudevents-batch+json; charset=utf-8']));
    }

    public function testCloudEventsAreToldApartBySourceAndId(): void
    {
        $format = new CloudEvents('/shop');
        $id = static function (string $source, array $headers = []) use ($format): ?string {
            $event = \json_encode(['specversion' => '1.0', 'id' => self::ID, 'source' => $source, 'type' => 'shop.order.placed', 'data' => []]);

            return $format->open(new Envelope('', (string) $event, $headers + [Header::CONTENT_TYPE => 'application/cloudevents+json']))?->header(Header::MESSAGE_ID);
        };

        self::assertSame(self::ID, $id('/shop'));
        self::assertSame('/erp ' . self::ID, $id('/erp'));
        self::assertSame('/billing ' . self::ID, $id('/billing', [Header::MESSAGE_ID => 'of the broker']));
        self::assertSame(self::ID, $id('/billing', [Header::MESSAGE_ID => self::ID]), 'sent by another bus: replies and encrypted values name its id');
    }

    /**
     * @dataProvider damaged
     *
     * @param list<Serializer>      $formats
     * @param array<string, string> $headers
     * @param class-string          $error
     */
    #[DataProvider('damaged')]
    public function testAMessageThatCannotBeReadIsParkedWithItsOriginalBytesAndHeaders(array $formats, string $body, array $headers, string $error = MessageDecodingException::class): void
    {
        $this->inRuntime(function () use ($formats, $body, $headers, $error): void {
            [$received, , , $letters] = self::read($formats, new Outgoing('shop.order.placed', $body, $headers));

            self::assertNull($received);
            self::assertCount(1, $letters);
            self::assertSame([$body, $error], [$letters[0]->body, $letters[0]->errorClass()]);
            self::assertSame($headers, \array_intersect_key($letters[0]->headers, $headers));
            self::assertStringNotContainsString('secret', $letters[0]->errorMessage());
        });
    }

    /** @return iterable<string, array<mixed>> */
    public static function damaged(): iterable
    {
        $events = [new CloudEvents('/shop')];
        $structured = [Header::CONTENT_TYPE => 'application/cloudevents+json'];
        yield 'an event that is not JSON' => [$events, 'secret', $structured];
        yield 'an event without an id' => [$events, '{"specversion":"1.0","source":"/erp","type":"shop.order.placed"}', $structured];
        yield 'an event of another version' => [$events, '{"specversion":"0.3","id":"1","source":"/erp","type":"shop.order.placed"}', $structured];
        yield 'an event in another format' => [$events, "\x00secret", [Header::CONTENT_TYPE => 'application/cloudevents+avro']];
        yield 'a batch of events' => [$events, '[]', [Header::CONTENT_TYPE => 'application/cloudevents-batch+json']];
        yield 'an event without data' => [$events, '{"specversion":"1.0","id":"1","source":"/erp","type":"shop.order.placed"}', $structured];
        yield 'an event with broken base64' => [$events, '{"specversion":"1.0","id":"1","source":"/erp","type":"shop.order.placed","data_base64":"*"}', $structured];
        yield 'an event with other data' => [$events, '{"specversion":"1.0","id":"1","source":"/erp","type":"shop.order.placed","data":{"id":7,"secret":1}}', $structured];
        yield 'an event of an unknown type' => [$events, '{"specversion":"1.0","id":"1","source":"/erp","type":"erp.other"}', $structured, UnknownMessageTypeException::class];
        yield 'a message of Symfony that is not JSON' => [[new SymfonyMessenger()], '<order/>', ['type' => OrderPlaced::class]];
        yield 'a message of Symfony with a class that is not registered' => [[new SymfonyMessenger()], '{}', ['type' => \ArrayObject::class], UnknownMessageTypeException::class];
        yield 'serialized PHP' => [[new SymfonyMessenger()], 'O:8:"stdClass":0:{}', []];
        yield 'a message of php-service-bus that is not JSON' => [[new PhpServiceBus()], 'secret', ['x-message-type' => OrderPlaced::class]];
        yield 'a format that throws' => [[new FailingSerializer()], '{}', []];
        yield 'a format that returns something else' => [[new HeaderMapping(new Other())], '{}', []];
    }

    /** @dataProvider envelopes */
    #[DataProvider('envelopes')]
    public function testDamagedMessagesOfOthersAreRefusedAndNothingElseHappens(EnvelopeSerializer $format, Envelope $envelope): void
    {
        \mt_srand(7);
        $opened = $refused = 0;
        for ($round = 0; $round < 3_000; $round++) {
            $body = self::damage($envelope->body);
            $headers = \array_map(static fn(string $value): string => \mt_rand(0, 3) === 0 ? self::damage($value) : $value, $envelope->headers);
            if (\mt_rand(0, 4) === 0) {
                unset($headers[\array_rand($headers)]);
            }
            try {
                $opened += $format->open(new Envelope('key', $body, $headers)) === null ? 0 : 1;
            } catch (MessageDecodingException $exception) {
                $refused++;
                self::assertLessThan(400, \strlen($exception->getMessage()));
            }
        }
        self::assertGreaterThan(0, $opened);
        self::assertLessThan(3_000, $opened + $refused, 'some are in no format at all');
    }

    /** @return iterable<string, array{EnvelopeSerializer, Envelope}> */
    public static function envelopes(): iterable
    {
        $event = ['specversion' => '1.0', 'id' => self::ID, 'source' => '/erp', 'type' => 'shop.order.placed', 'data' => ['id' => '1', 'nested' => [[[1]]]]];
        yield 'CloudEvents, structured' => [new CloudEvents('/shop'), new Envelope('', (string) \json_encode($event), [Header::CONTENT_TYPE => 'application/cloudevents+json'])];
        yield 'CloudEvents, binary' => [new CloudEvents('/shop'), new Envelope('', '{}', ['cloudEvents_specversion' => '1.0', 'cloudEvents_id' => '1', 'cloudEvents_source' => '/', 'cloudEvents_type' => 't'])];
        yield 'Symfony' => [new SymfonyMessenger(), new Envelope('', '{}', ['type' => 'App\\Order', Header::CONTENT_TYPE => 'application/json'])];
        yield 'php-service-bus 4' => [new PhpServiceBus(), new Envelope('', '{"message":{"id":"1"},"namespace":"App\\\\Order"}', ['X-SERVICE-BUS-TRACE-ID' => self::ID])];
        yield 'php-service-bus 5' => [new PhpServiceBus(), new Envelope('', '{"id":"1"}', ['x-message-type' => 'App\\Order', 'x-trace-id' => self::ID])];
        yield 'mapped' => [new HeaderMapping(new CloudEvents('/shop'), types: ['a' => OrderPlaced::class], headers: [Header::MESSAGE_ID => 'x-id']), new Envelope('', (string) \json_encode($event), [Header::CONTENT_TYPE => 'application/cloudevents+json', 'x-id' => '1'])];
    }

    private static function damage(string $text): string
    {
        for ($times = \mt_rand(0, 3); $times > 0; $times--) {
            $at = \mt_rand(0, \strlen($text));
            $text = match (\mt_rand(0, 3)) {
                0 => \substr($text, 0, $at),
                1 => \substr_replace($text, \chr(\mt_rand(0, 255)), $at, 1),
                2 => \substr_replace($text, \str_repeat('[', \mt_rand(1, 600)), $at, 0),
                default => \substr_replace($text, \chr(\mt_rand(0, 255)) . \chr(\mt_rand(0, 255)), $at, 0),
            };
        }

        return $text;
    }

    /** @dataProvider invalid */
    #[DataProvider('invalid')]
    public function testSettingsThatMakeNoSenseAreRefused(\Closure $make, string $why): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage($why);
        $make();
    }

    /** @return iterable<string, array{\Closure, string}> */
    public static function invalid(): iterable
    {
        yield 'CloudEvents without a source' => [static fn(): object => new CloudEvents(''), 'The source of CloudEvents must not be empty'];
        yield 'an unknown version' => [static fn(): object => new PhpServiceBus(version: 3), 'Messages are written for version 4 or 5 of php-service-bus, got 3'];
        yield 'a long exchange' => [static fn(): object => new Route(\str_repeat('x', 128)), 'has 128'];
        yield 'a long routing key' => [static fn(): string => (new Route('shop', \str_repeat('x', 256)))->keyOf(new CustomerRelocated('1'), 't'), 'has 256'];
        yield 'a message type that no database takes' => [static fn(): object => new MessageType("order\0placed"), 'The name of a message type must have 1 to 200 bytes of UTF-8 without NUL'];
        yield 'a message type that is not UTF-8' => [static fn(): object => new MessageType("order\xff"), 'of UTF-8'];
        yield 'a header that the broker interprets' => [static fn(): object => new Route('shop', headers: ['CC' => 'x']), 'The header "CC" cannot be set: RabbitMQ interprets it'];
        yield 'a listener of nothing' => [static fn(): object => new EventListener(''), 'must not be empty'];
    }

    public function testARequestAndItsReplyMayBeInAnotherFormat(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect('memory:')->handlers(new class {
                #[QueryHandler]
                public function user(GetUserRequest $query): User
                {
                    return new User(id: $query->id, name: 'Zoë');
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $consuming = async(static fn() => $bus->consume(self::QUEUE));
            $reply = $bus->request(new GetUserRequest(id: 7), reply: User::class);
            $bus->stop();
            $consuming->await();

            self::assertEquals(new User(id: 7, name: 'Zoë'), $reply);
        });
    }

    public function testATestBusReadsEveryFormat(): void
    {
        $this->inRuntime(function (): void {
            $bus = (new TestBus())->configure(self::options(serializers: [OrderPlaced::class => new HeaderMapping(new CloudEvents('/shop', ContentMode::Structured), types: ['order_placed' => OrderPlaced::class])]));
            $bus->handlers(new class {
                #[EventListener]
                #[\Weft\Bus\Retry(immediate: 0)]
                public function sent(ParcelSent $event): void
                {
                    throw new class ('no') extends \RuntimeException implements Unrecoverable {};
                }
            });
            $bus->bus()->publish(self::order());
            $bus->publish(new ParcelSent('p-1', 3));
            $bus->publish(new User(id: 7));

            $bus->assertSent(OrderPlaced::class)->once()->with(id: 'o-1');
            $bus->assertSent(User::class)->once()->with(id: 7);
            $bus->assertDeadLettered(ParcelSent::class)->once()->with(grams: 3);
            $bus->close();
        });
    }

    public function testSymfonysStampsStayWithTheMessage(): void
    {
        $this->inRuntime(function (): void {
            $stamp = 'X-Message-Stamp-Symfony\Component\Messenger\Stamp\BusNameStamp';
            $format = new SymfonyMessenger(['App\Order\Placed' => OrderPlaced::class], bus: 'event.bus');
            [$received, $context] = self::read([$format], new Outgoing('', '{"id":"o-9","lines":[{"sku":"s","count":1}],"at":"2026-01-02T03:04:05+00:00"}', [
                'type' => 'App\Order\Placed', $stamp => '[{"busName":"event.bus"}]', Header::CONTENT_TYPE => 'application/json',
            ]));
            self::assertEquals(new OrderPlaced('o-9', [new OrderLine('s', 1)], new \DateTimeImmutable('2026-01-02T03:04:05Z')), $received);
            self::assertSame('[{"busName":"event.bus"}]', $context?->header($stamp));

            [, , $sent] = self::received([OrderPlaced::class => $format], [], self::order());
            self::assertSame(['App\Order\Placed', '[{"busName":"event.bus"}]'], [$sent?->headers['type'], $sent?->headers[$stamp]]);
        });
    }

    /**
     * @dataProvider old
     *
     * @param array<string, string> $headers
     */
    #[DataProvider('old')]
    public function testAQueueOfPhpServiceBusCanBeMovedWhileMessagesAreInIt(string $body, array $headers): void
    {
        $this->inRuntime(function () use ($body, $headers): void {
            $trace = '0af76519-16cd-43dd-8448-eb211c80319c';
            $broker = new Memory();
            $seen = [];
            $bus = self::bus($broker, ['orders' => new PhpServiceBus(['App\OrderPlaced' => OrderPlaced::class])], [], $seen);
            $bus->queue('orders')->declare();
            $broker->put('orders', [
                new Outgoing('', $body, $headers + ['X-SERVICE-BUS-TRACE-ID' => $trace]),
                new Outgoing('shop.order.placed', '{"id":"new","lines":[],"at":"2026-01-02T03:04:05Z"}', [Header::MESSAGE_ID => self::ID]),
            ]);
            $bus->consume('orders', options: new ConsumeOptions(stopWhenEmpty: true));

            self::assertEquals([new OrderPlaced('old', [], new \DateTimeImmutable('2019-01-01T00:00:00Z')), 'new'], [$seen[0][0], $seen[1][0]->id]);
            self::assertSame([$trace, '0af7651916cd43dd8448eb211c80319c'], [$seen[0][1]->correlationId(), $seen[0][1]->trace()->traceId()]);
            self::assertSame(self::ID, $seen[1][1]->correlationId());
        });
    }

    /** @return iterable<string, array{string, array<string, string>}> */
    public static function old(): iterable
    {
        $properties = '{"id":"old","lines":[],"at":"2019-01-01T00:00:00+00:00"}';
        yield 'version 3 and 4' => ['{"message":' . $properties . ',"namespace":"App\\\\OrderPlaced"}', ['X-SERVICE-BUS-ENCODER' => 'service_bus.encoder.default_handler']];
        yield 'version 5' => [$properties, ['x-message-type' => 'App\OrderPlaced', 'x-encoder-type' => 'service_bus.encoder.default_handler']];
        yield 'version 5, as it was at first' => [$properties, ['X-SERVICE-BUS-MESSAGE-TYPE' => 'App\OrderPlaced']];
    }

    public function testNamesInSnakeCaseAreReadAsPhpServiceBusReadsThem(): void
    {
        $this->inRuntime(function (): void {
            [$received] = self::read([new PhpServiceBus()], new Outgoing('', '{"customer_id":"c-1"}', ['x-message-type' => CustomerRelocated::class]), CustomerRelocated::class);

            self::assertEquals(new CustomerRelocated('c-1'), $received);
        });
    }

    public function testHeadersOfOthersAreMappedInBothDirections(): void
    {
        $this->inRuntime(function (): void {
            $format = new HeaderMapping(new Json(), 'event_name', ['order_placed' => OrderPlaced::class], [Header::MESSAGE_ID => 'x-request-id', Header::CORRELATION_ID => 'x-conversation']);
            [$received, $context] = self::read([$format], new Outgoing('some.key', '{"id":"o-9","lines":[],"at":"2026-01-02T03:04:05Z"}', [
                'event_name' => 'order_placed', 'x-request-id' => 'r-1', 'x-conversation' => 'c-1',
            ]));
            self::assertSame(['o-9', 'r-1', 'c-1'], [$received->id ?? null, $context?->messageId(), $context?->correlationId()]);

            $broker = new Memory();
            $broker->declare('theirs', ['order_placed']);
            Bus::connect($broker, options: self::options(serializers: [OrderPlaced::class => $format]))->publish(self::order());
            $sent = $broker->consume('theirs', 1)->next(1, 0.0)[0];
            self::assertSame(['order_placed', $sent->headers[Header::MESSAGE_ID]], [$sent->headers['event_name'], $sent->headers['x-request-id']]);
        });
    }

    public function testMessagesOfBeforeAClassGotAFormatAreStillRead(): void
    {
        $this->inRuntime(function (): void {
            $broker = new Memory();
            $seen = [];
            $bus = self::bus($broker, [], [OrderPlaced::class => new Reversed()], $seen);
            $bus->queue(self::QUEUE)->declare();
            $broker->publish([new Outgoing('shop.order.placed', '{"id":"before","lines":[],"at":"2026-01-02T03:04:05Z"}', [])]);
            $bus->publish(self::order());
            self::drain($bus);

            self::assertSame(['before', 'o-1'], [$seen[0][0]->id, $seen[1][0]->id]);
        });
    }

    public function testUpcastersRunForOtherFormats(): void
    {
        $this->inRuntime(function (): void {
            $broker = new Memory();
            $seen = [];
            $bus = self::bus($broker, [], [], $seen)->handlers(new class {
                #[Upcaster(ParcelSent::class, from: 1)]
                public function weigh(array $data): array
                {
                    return $data + ['grams' => 0];
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $headers = (new CloudEvents('/shop'))->encode(new ParcelSent('p-1', 1), new Envelope('parcel.sent', '', [Header::MESSAGE_ID => self::ID]), new NoNormalizer())->headers;
            $broker->publish([new Outgoing('parcel.sent', '{"id":"p-1"}', [Header::SCHEMA_VERSION => '1'] + $headers)]);
            self::drain($bus);

            self::assertEquals(new ParcelSent('p-1', 0), $seen[0][0] ?? null);
        });
    }

    public function testARetryAndARetriedDeadLetterAreReadAgain(): void
    {
        $this->inRuntime(function (): void {
            $broker = new Memory();
            $calls = 0;
            $listener = new class (static function () use (&$calls): void {
                ++$calls > 2 || throw new \DomainException('not now');
            }) {
                public function __construct(private readonly \Closure $note) {}

                #[EventListener]
                #[\Weft\Bus\Retry(delayed: 1, delay: 0.001)]
                public function seen(OrderPlaced $event): void
                {
                    ($this->note)();
                }
            };
            $bus = Bus::connect($broker, options: self::options([self::QUEUE => [new SymfonyMessenger()]]))->handlers($listener);
            $bus->queue(self::QUEUE)->declare();
            $broker->put(self::QUEUE, [new Outgoing('', '{"id":"o-9","lines":[],"at":"2026-01-02T03:04:05Z"}', ['type' => OrderPlaced::class])]);
            while ($bus->queue(self::QUEUE)->deadLetters()->count() === 0) {
                self::drain($bus);
                \Weft\delay(0.005);
            }
            self::assertSame(2, $calls);
            self::assertSame(1, $bus->queue(self::QUEUE)->deadLetters()->retry());
            self::drain($bus);

            self::assertSame([3, 0], [$calls, $bus->queue(self::QUEUE)->deadLetters()->count()]);
        });
    }

    public function testRulesForSeveralClassesMustNotContradictEachOther(): void
    {
        $options = self::options(serializers: ['shop.*' => new Json(), '*.placed' => new CloudEvents('/shop')], classes: [OrderPlaced::class]);

        $this->expectException(InvalidMessageClassError::class);
        $this->expectExceptionMessage('several serializers fit it, "shop.*" and "*.placed"; add one for the class itself');
        Bus::connect('memory:', options: $options);
    }

    public function testARuleForTheClassWinsOverOthersAndTheAttribute(): void
    {
        $this->inRuntime(function (): void {
            $rules = ['shop.*' => new Json(), OrderPlaced::class => new Reversed()];
            [, , $sent] = self::received($rules, [], self::order());
            self::assertSame('text/reversed', $sent?->headers[Header::CONTENT_TYPE]);

            [, , $sent] = self::received([ShopEvent::class => new Reversed()], [], self::order());
            self::assertSame('text/reversed', $sent?->headers[Header::CONTENT_TYPE], 'an interface');
        });
    }

    public function testAFormatThatFailsNamesItselfAndTheClass(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect('memory:', options: self::options(serializers: [OrderPlaced::class => new FailingSerializer()]));

            $this->expectException(MessageEncodingException::class);
            $this->expectExceptionMessage('Cannot encode ' . OrderPlaced::class . ': ' . FailingSerializer::class . ' failed: no');
            $bus->publish(self::order());
        });
    }

    private static function order(): OrderPlaced
    {
        return new OrderPlaced('o-1', [], new \DateTimeImmutable('2026-01-02T03:04:05Z'));
    }

    /**
     * Sends a message and handles it.
     *
     * @param array<string, Serializer>                  $serializers
     * @param array<string, Serializer|list<Serializer>> $queues
     * @param class-string                               $class
     * @return array{?object, ?Context, ?Delivery} the message, its context, and what was sent
     */
    private static function received(array $serializers, array $queues, object $message, string $class = OrderPlaced::class): array
    {
        $broker = new Memory();
        $seen = [];
        $bus = self::bus($broker, $queues, $serializers, $seen, $class);
        $bus->queue(self::QUEUE)->declare();
        $broker->declare('copies', [$class === OrderPlaced::class ? 'shop.order.placed' : $class]);
        $bus->publish($message);
        self::drain($bus);

        return [$seen[0][0] ?? null, $seen[0][1] ?? null, $broker->consume('copies', 1)->next(1, 0.0)[0] ?? null];
    }

    /**
     * Handles a message that somebody else has put into the queue.
     *
     * @param list<Serializer> $formats
     * @param class-string     $class
     * @return array{?object, ?Context, null, list<DeadLetter>}
     */
    private static function read(array $formats, Outgoing $message, string $class = OrderPlaced::class): array
    {
        $broker = new Memory();
        $seen = [];
        $bus = self::bus($broker, [self::QUEUE => $formats], [], $seen, $class);
        $bus->queue(self::QUEUE)->declare();
        $broker->put(self::QUEUE, [$message]);
        self::drain($bus);

        return [$seen[0][0] ?? null, $seen[0][1] ?? null, null, $bus->queue(self::QUEUE)->deadLetters()->peek()];
    }

    /**
     * @param array<string, Serializer|list<Serializer>> $queues
     * @param array<string, Serializer>                  $serializers
     * @param list<array{object, Context}>               $seen
     * @param class-string                               $class
     */
    private static function bus(Memory $broker, array $queues, array $serializers, array &$seen, string $class = OrderPlaced::class): Bus
    {
        $note = static function (object $message, Context $context) use (&$seen): void {
            $seen[] = [$message, $context];
        };

        return Bus::connect($broker, options: self::options($queues, $serializers))->handlers(match ($class) {
            Thumbnail::class => new class ($note) {
                public function __construct(private readonly \Closure $note) {}

                #[EventListener]
                public function on(Thumbnail $message, Context $context): void
                {
                    ($this->note)($message, $context);
                }
            },
            CustomerRelocated::class => new class ($note) {
                public function __construct(private readonly \Closure $note) {}

                #[EventListener]
                public function on(CustomerRelocated $message, Context $context): void
                {
                    ($this->note)($message, $context);
                }
            },
            default => new class ($note) {
                public function __construct(private readonly \Closure $note) {}

                #[EventListener]
                public function placed(OrderPlaced $message, Context $context): void
                {
                    ($this->note)($message, $context);
                }

                #[EventListener]
                public function sent(ParcelSent $message, Context $context): void
                {
                    ($this->note)($message, $context);
                }
            },
        });
    }

    /**
     * @param array<string, Serializer|list<Serializer>> $queues
     * @param array<string, Serializer>                  $serializers
     * @param array<string, Route>                       $routes
     * @param list<class-string>                         $classes
     */
    private static function options(array $queues = [], array $serializers = [], array $routes = [], array $classes = []): BusOptions
    {
        return new BusOptions(messages: new MessageOptions($classes, serializers: $serializers, routes: $routes, queueSerializers: $queues));
    }
}

interface ShopEvent {}

final class OrderLine
{
    public function __construct(public readonly string $sku, public readonly int $count) {}
}

#[MessageType('shop.order.placed')]
final class OrderPlaced implements ShopEvent
{
    /** @param list<OrderLine> $lines */
    public function __construct(public readonly string $id, public readonly array $lines, public readonly \DateTimeImmutable $at) {}
}

final class CustomerRelocated
{
    public function __construct(public readonly string $customerId) {}
}

#[MessageType('parcel.sent', version: 2)]
#[SerializedBy(new CloudEvents('/shop'))]
final class ParcelSent
{
    public function __construct(public readonly string $id, public readonly int $grams) {}
}

#[SerializedBy(new RawBytes('image/png'))]
final class Thumbnail
{
    public function __construct(public readonly string $png) {}
}

/** A format as an application would write one. */
final class Reversed implements Serializer
{
    public function contentType(): string
    {
        return 'text/reversed';
    }

    public function encode(object $message, Envelope $envelope, Normalizer $normalizer): Envelope
    {
        return $envelope->with(body: \strrev((string) \json_encode($normalizer->normalize($message))));
    }

    public function decode(Envelope $envelope, string $class, Normalizer $normalizer): object
    {
        return $normalizer->denormalize($class, (array) \json_decode(\strrev($envelope->body), true));
    }
}

final class FailingSerializer implements EnvelopeSerializer
{
    public function contentType(): string
    {
        return 'text/failing';
    }

    public function encode(object $message, Envelope $envelope, Normalizer $normalizer): Envelope
    {
        throw new \DomainException('no');
    }

    public function open(Envelope $received): ?Envelope
    {
        throw new \DomainException('no');
    }

    public function decode(Envelope $envelope, string $class, Normalizer $normalizer): object
    {
        throw new \DomainException('no');
    }
}

final class Other implements Serializer
{
    public function contentType(): string
    {
        return 'text/other';
    }

    public function encode(object $message, Envelope $envelope, Normalizer $normalizer): Envelope
    {
        return $envelope;
    }

    public function decode(Envelope $envelope, string $class, Normalizer $normalizer): object
    {
        return new \stdClass();
    }
}

final class NoNormalizer implements Normalizer
{
    public function normalize(object $message): array
    {
        return [];
    }

    public function denormalize(string $class, array $data): object
    {
        return new $class();
    }
}
