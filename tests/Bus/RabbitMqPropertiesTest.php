<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bus\Header;
use Weft\Bus\Internal\RabbitMq\Properties;
use Weft\Bus\Internal\RabbitMq\Publisher;
use Weft\Bus\Transport\Outgoing;

final class RabbitMqPropertiesTest extends TestCase
{
    private const ID = '0199d6c1-8f3a-7c52-9d1e-5b0c7a4e2f10';
    private const SHORT_ID = '01K7BC33STFH99T7JV1HX4WBRG';

    /** Above that RabbitMQ computes a third longer for every message. */
    private const CHEAP_BYTES = 64;

    /**
     * @dataProvider ordinaryMessages
     * @param array<string, string> $headers
     */
    #[DataProvider('ordinaryMessages')]
    public function testAnOrdinaryMessageHasNoMorePropertiesThanAreCheap(array $headers): void
    {
        [$left, $properties] = Properties::routed(new Outgoing('Shop\\Orders\\Order\\PlaceOrderWithAVeryLongName', '{}', $headers));

        self::assertSame([], $left);
        $flagsAndDeliveryMode = 3;
        $bytes = $flagsAndDeliveryMode + \array_sum(\array_map(static fn(string $text): int => 1 + \strlen($text), $properties));
        self::assertLessThanOrEqual(self::CHEAP_BYTES, $bytes);
    }

    public static function ordinaryMessages(): iterable
    {
        yield 'a command' => [[Header::MESSAGE_ID => self::ID, Header::KIND => 'command']];
        yield 'an event of its handler' => [[Header::MESSAGE_ID => self::ID, Header::CORRELATION_ID => self::ID]];
        yield 'a command of a handler' => [[Header::MESSAGE_ID => self::ID, Header::CORRELATION_ID => self::ID, Header::KIND => 'command']];
    }

    public function testIdsTravelInTheirShortFormAndArriveInTheirOwn(): void
    {
        [, $properties] = Properties::routed(new Outgoing('a', '{}', [Header::MESSAGE_ID => self::ID, Header::CORRELATION_ID => 'order-17']));

        self::assertSame(['messageId' => self::SHORT_ID, 'correlationId' => 'order-17'], $properties);
        $delivery = Properties::delivery([1, false, Publisher::EVENTS, 'a', '{}', [], $properties]);
        self::assertSame([Header::MESSAGE_ID => self::ID, Header::CORRELATION_ID => 'order-17'], $delivery->headers);
        self::assertSame('a', $delivery->type);
    }

    public function testHeadersThatTheBrokerInterpretsAreNotPublished(): void
    {
        $broker = ['CC' => 'boss@example.org', 'BCC' => 'x', 'x-death' => 'a', 'x-delivery-count' => '7', 'x-first-death-exchange' => Publisher::COMMANDS];
        $message = new Outgoing('a', '{}', [...$broker, 'cc' => 'of the application', Header::MESSAGE_ID => 'm1']);

        self::assertSame(['cc' => 'of the application'], Properties::routed($message)[0]);
        self::assertSame(['cc' => 'of the application'], Properties::direct($message)[0]);
        $delivery = Properties::delivery([1, false, '', 'q', '{}', ['CC' => ['side'], 'tenant' => 't'], []]);
        self::assertSame(['CC' => '["side"]', 'tenant' => 't'], $delivery->headers, 'a handler may read whom the sender has copied');
        self::assertSame(['tenant' => 't'], Properties::direct(new Outgoing('a', '{}', $delivery->headers), $delivery->extra)[0]);
    }

    public function testTheExchangeOrAHeaderTellsTheKindOfAMessage(): void
    {
        $headers = [Header::MESSAGE_ID => self::ID, Header::KIND => 'command'];
        [$left, $properties] = Properties::direct(new Outgoing('a', '{}', $headers));

        self::assertSame($headers, Properties::delivery([1, false, Publisher::COMMANDS, 'a', '{}', [], ['messageId' => self::SHORT_ID]])->headers);
        self::assertEquals($headers, Properties::delivery([1, false, '', 'customers.dead', '{}', $left, $properties])->headers);
        self::assertSame('a', $properties['type']);
        self::assertEquals($headers, Properties::delivery([1, false, 'expired', 'a', '{}', ['x-first-death-exchange' => Publisher::COMMANDS], ['messageId' => self::SHORT_ID]])->headers, 'dead-lettered by the broker');
    }

    public function testAMessageThroughAForeignExchangeNamesItsTypeAndItsKind(): void
    {
        $headers = [Header::MESSAGE_ID => self::ID, Header::KIND => 'command'];
        [$left, $properties] = Properties::routed(new Outgoing('a', '{}', $headers + [Header::EXCHANGE => 'shop', Header::ROUTING_KEY => 'orders']));

        self::assertSame([[Header::KIND => 'command'], ['type' => 'a', 'messageId' => self::SHORT_ID]], [$left, $properties]);
        $delivery = Properties::delivery([1, false, 'shop', 'orders', '{}', $left, $properties]);
        self::assertEquals(['a', $headers], [$delivery->type, $delivery->headers]);
    }

    public function testAForeignIdThatIsNotUtf8IsEscapedInBothDirections(): void
    {
        $foreign = [Header::MESSAGE_ID => "caf\xe9", Header::CORRELATION_ID => "\xff", Header::CONTENT_TYPE => "text/\xe9"];
        $escaped = [Header::MESSAGE_ID => 'caf\\351', Header::CORRELATION_ID => '\\377', Header::CONTENT_TYPE => 'text/\\351'];

        $delivery = Properties::delivery([1, false, Publisher::EVENTS, 'a', '{}', $foreign, []]);
        self::assertSame([$escaped, null], [$delivery->headers, $delivery->damage]);

        [, $properties] = Properties::direct(new Outgoing("t\xff", '{}', $foreign));
        self::assertEquals(['type' => 't\\377', 'messageId' => 'caf\\351', 'correlationId' => '\\377', 'contentType' => 'text/\\351'], $properties);
    }

    public function testADeliveryThatCannotBeConvertedIsUnreadable(): void
    {
        $delivery = Properties::delivery([7, true, '', 'a', 'body', [], ['type' => ['no text']]], ['subscription' => 2]);

        self::assertSame([7, 'a', 'body', true, ['subscription' => 2]], [$delivery->tag, $delivery->type, $delivery->body, $delivery->redelivered, $delivery->extra]);
        self::assertStringStartsWith('Cannot decode "a": its headers or properties are invalid: ', (string) $delivery->damage?->getMessage());
        self::assertSame([14, $delivery->damage], [$delivery->tagged(14)->tag, $delivery->tagged(14)->damage], 'as one of several consumers of a queue has it');
    }
}
