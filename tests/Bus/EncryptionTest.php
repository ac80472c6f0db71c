<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\Encrypted;
use Weft\Bus\Header;
use Weft\Bus\InvalidMessageClassError;
use Weft\Bus\KeyRing;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\MessageOptions;
use Weft\Bus\OrderedBy;
use Weft\Bus\SendOptions;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Outgoing;
use Weft\Sql\Database;
use Weft\Tests\Bus\Fixtures\SpyTransport;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;
use Weft\Tests\RecordingLogger;

final class EncryptionTest extends BusTestCase
{
    use TemporaryDatabase;

    public function testAMarkedPropertyTravelsEncryptedAndArrivesAsItWas(): void
    {
        $this->inRuntime(function (): void {
            $seen = $bodies = [];
            $spy = new SpyTransport(new Memory());
            $spy->before = static function (string $what, array $messages) use (&$bodies): void {
                \array_push($bodies, ...\array_map(static fn(Outgoing $message): string => $message->body, $messages));
            };
            $bus = Bus::connect($spy, options: new BusOptions(messages: new MessageOptions(keys: self::ring('a'))))->handlers(self::paying(static function (PayByCard $command) use (&$seen): void {
                $seen[] = [$command->customer, $command->card, $command->limits, $command->note];
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(new PayByCard('7', '4111111111111111', [1, 2], null));
            $bus->send(new PayByCard('7', '4111111111111111', [1, 2], 'weft2:a:x'));
            self::drain($bus);

            self::assertSame([['7', '4111111111111111', [1, 2], null], ['7', '4111111111111111', [1, 2], 'weft2:a:x']], $seen);
            $bodies = \array_values(\array_filter($bodies));
            self::assertStringNotContainsString('4111', \implode($bodies));
            self::assertMatchesRegularExpression('/^{"customer":"7","card":"weft2:a:[\w+\/=]+","limits":"weft2:a:[\w+\/=]+","note":"weft2:a:[\w+\/=]+"}$/', $bodies[0]);
            self::assertNotSame(\json_decode($bodies[0])->card, \json_decode($bodies[1])->card, 'equal values do not look equal');
        });
    }

    public function testNeitherDeadLettersNorOutboxNorLogTellTheValue(): void
    {
        $this->inRuntime(function (): void {
            $logger = new RecordingLogger();
            $database = Database::connect($this->dsn());
            $bus = Bus::connect('memory:', $database, new BusOptions(logger: $logger, messages: new MessageOptions(keys: self::ring('a'))))->handlers(self::paying(static fn() => throw new \DomainException('declined')));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(new PayByCard('7', '4111111111111111'));
            $bus->send(new PayByCard('8', '4111111111111111'), new SendOptions(delay: 60.0));
            self::drain($bus);

            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame('declined', $letter->errorMessage());
            $everything = $letter->body . \implode($letter->headers) . $database->execute('SELECT body FROM weft_delayed')->value()
                . \json_encode($logger->records, \JSON_PARTIAL_OUTPUT_ON_ERROR);
            self::assertStringNotContainsString('4111', $everything);
        });
    }

    public function testKeysAreRotatedAndMessagesOfOldOnesAreReadAsLongAsTheRingHasThem(): void
    {
        $this->inRuntime(function (): void {
            $broker = new Memory();
            $cards = [];
            $pay = static function (PayByCard $command) use (&$cards): void {
                $cards[] = $command->card;
            };
            $sender = Bus::connect($broker, options: new BusOptions(messages: new MessageOptions(keys: self::ring('a'))));
            $rotated = Bus::connect($broker, options: new BusOptions(messages: new MessageOptions(keys: self::ring('b', 'a', 'b'))))->handlers(self::paying($pay));
            $rotated->queue(self::QUEUE)->declare();
            $sender->send(new PayByCard('1', 'old'));
            $rotated->send(new PayByCard('2', 'new'));
            self::drain($rotated);
            self::assertSame(['old', 'new'], $cards);

            $sender->send(new PayByCard('3', 'too old'));
            $without = Bus::connect($broker, options: new BusOptions(messages: new MessageOptions(keys: self::ring('b'))))->handlers(self::paying($pay));
            self::drain($without);
            [$letter] = $without->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame(MessageDecodingException::class, $letter->errorClass());
            self::assertStringContainsString('at $.card expected encrypted string, found a value encrypted with the key "a", which is not in the key ring', $letter->errorMessage());
            $without->queue(self::QUEUE)->deadLetters()->retry();
            self::drain($rotated);
            self::assertSame('too old', \end($cards));
        });
    }

    /** @dataProvider broken */
    #[DataProvider('broken')]
    public function testAnUnencryptedOrAlteredMessageIsDeadLetteredWithoutRevealingItsContent(\Closure $change, string $error): void
    {
        $this->inRuntime(function () use ($change, $error): void {
            $sent = null;
            $broker = new Memory();
            $spy = new SpyTransport($broker);
            $spy->before = static function (string $what, array $messages) use (&$sent): void {
                $sent = $messages[0] ?? $sent;
            };
            $bus = Bus::connect($spy, options: new BusOptions(messages: new MessageOptions(keys: self::ring('a'))))->handlers(self::paying(static fn() => null));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(new PayByCard('7', '4111111111111111'));
            $bus->queue(self::QUEUE)->purge();
            $data = $change(\json_decode($sent->body, true));
            $broker->publish([new Outgoing(PayByCard::class, \json_encode($data), $sent->headers)]);
            self::drain($bus);

            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertStringContainsString($error, $letter->errorMessage());
            self::assertStringNotContainsString('4111', $letter->errorMessage());
        });
    }

    /** @return iterable<string, array{\Closure(array<string, mixed>): array<string, mixed>, string}> */
    public static function broken(): iterable
    {
        // Not at the end: some bits of the last digits of base 64 mean nothing.
        $flip = static fn(string $sealed): string => \substr($sealed, 0, -8) . ($sealed[-8] === 'A' ? 'B' : 'A') . \substr($sealed, -7);
        yield 'plain' => [static fn(array $data): array => ['card' => '4111111111111111'] + $data, 'found an unencrypted value'];
        yield 'changed' => [static fn(array $data): array => ['card' => $flip($data['card'])] + $data, 'found a value that the key "a" cannot decrypt'];
        yield 'of another property' => [static fn(array $data): array => ['card' => $data['note']] + $data, 'found a value that the key "a" cannot decrypt'];
        yield 'cut' => [static fn(array $data): array => ['card' => 'weft2:a:AAAA'] + $data, 'found a value that the key "a" cannot decrypt'];
        yield 'no key' => [static fn(array $data): array => ['card' => 'weft2:'] + $data, 'found a value without a key id'];
    }

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testAValueOpensInTheMessageAloneThatItWasSentWith(string $type, bool $otherId, bool $opens): void
    {
        $this->inRuntime(function () use ($type, $otherId, $opens): void {
            $sent = null;
            $cards = [];
            $broker = new Memory();
            $spy = new SpyTransport($broker);
            $spy->before = static function (string $what, array $messages) use (&$sent): void {
                $sent ??= $messages[0] ?? null;
            };
            $bus = Bus::connect($spy, options: new BusOptions(messages: new MessageOptions(keys: self::ring('a'))))->handlers(self::paying(static function (object $command) use (&$cards): void {
                $cards[] = $command->card;
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(new PayByCard('7', '4111'));
            $bus->queue(self::QUEUE)->purge();
            $broker->publish([new Outgoing($type, $sent->body, ($otherId ? [Header::MESSAGE_ID => '0199d6c1-8f3a-7c52-9d1e-5b0c7a4e2f10'] : []) + $sent->headers)]);
            self::drain($bus);

            self::assertSame($opens ? ['4111'] : [], $cards);
            $opens || self::assertStringContainsString('found a value that the key "a" cannot decrypt', $bus->queue(self::QUEUE)->deadLetters()->peek()[0]->errorMessage());
        });
    }

    /** @return iterable<string, array{string, bool, bool}> */
    public static function places(): iterable
    {
        yield 'the same message' => [PayByCard::class, false, true];
        yield 'another message of its type' => [PayByCard::class, true, false];
        yield 'another type' => [Refund::class, false, false];
    }

    public function testValuesOfTheFormatBeforeAreReadOnlyWhereThatIsSaid(): void
    {
        $this->inRuntime(function (): void {
            $broker = new Memory();
            $cards = [];
            $pay = self::paying(static function (object $command) use (&$cards): void {
                $cards[] = $command->card;
            });
            $nonce = \random_bytes(\SODIUM_CRYPTO_AEAD_XCHACHA20POLY1305_IETF_NPUBBYTES);
            $old = 'weft1:a:' . \base64_encode($nonce . \sodium_crypto_aead_xchacha20poly1305_ietf_encrypt('"4111"', 'card', $nonce, \hash('sha256', 'a', true)));
            $strict = Bus::connect($broker, options: new BusOptions(messages: new MessageOptions(keys: self::ring('a'))))->handlers($pay);
            $strict->queue(self::QUEUE)->declare();
            $broker->publish([new Outgoing(PayByCard::class, \json_encode(['customer' => '7', 'card' => $old]), [])]);
            self::drain($strict);
            self::assertStringContainsString('found a value of the format weft1, which is not bound to its message', $strict->queue(self::QUEUE)->deadLetters()->peek()[0]->errorMessage());

            $lenient = Bus::connect($broker, options: new BusOptions(messages: new MessageOptions(keys: new KeyRing('a', ['a' => \hash('sha256', 'a', true)], acceptUnbound: true))))->handlers($pay);
            $lenient->queue(self::QUEUE)->deadLetters()->retry();
            self::drain($lenient);
            self::assertSame(['4111'], $cards);
        });
    }

    public function testPlainValuesAreTakenWhereThatIsSaid(): void
    {
        $this->inRuntime(function (): void {
            $broker = new Memory();
            $seen = null;
            $bus = Bus::connect($broker, options: new BusOptions(messages: new MessageOptions(keys: self::ring('a'))))->handlers(new class ($seen) {
                public function __construct(private ?string &$seen) {}

                #[CommandHandler]
                public function migrate(Migrated $command): void
                {
                    $this->seen = $command->card;
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $broker->publish([new Outgoing(Migrated::class, '{"card":"plain"}', [])]);
            self::drain($bus);
            self::assertSame('plain', $seen);
        });
    }

    public function testAMessageWithoutARingARingWithoutItsKeyAndAKeyInPlainTextAreRefused(): void
    {
        $key = KeyRing::generate();
        foreach (
            [
            'is #[Encrypted] and needs a key ring: pass a KeyRing to Bus::connect()' => static fn() => Bus::connect('memory:', options: new BusOptions(messages: new MessageOptions(classes: [PayByCard::class]))),
            'which is encrypted; a key must not be encrypted' => static fn() => Bus::connect('memory:', options: new BusOptions(messages: new MessageOptions(classes: [OrderedBySecret::class], keys: self::ring('a')))),
            'The current key "b" is not in the ring' => static fn() => new KeyRing('b', ['a' => $key]),
            'The key "a" must be a string of 32 bytes' => static fn() => new KeyRing('a', ['a' => 'short']),
            'The id of a key must have 1 to 64' => static fn() => new KeyRing('a:b', ['a:b' => $key]),
            ] as $message => $make
        ) {
            try {
                $make();
                self::fail("{$message} was taken");
            } catch (\ValueError | InvalidMessageClassError $error) {
                self::assertStringContainsString($message, $error->getMessage());
                self::assertStringNotContainsString($key, $error->getMessage());
            }
        }
    }

    public function testADumpOfARingDoesNotTellItsKeys(): void
    {
        $key = KeyRing::generate();
        $ring = new KeyRing('a', ['a' => $key]);

        self::assertStringNotContainsString($key, \print_r($ring, true));
        $this->expectException(\Error::class);
        \serialize($ring);
    }

    private static function ring(string $current, string ...$ids): KeyRing
    {
        $keys = [];
        foreach ($ids === [] ? [$current] : $ids as $id) {
            $keys[$id] = \hash('sha256', $id, true);
        }

        return new KeyRing($current, $keys);
    }

    private static function paying(\Closure $pay): object
    {
        return new class ($pay) {
            public function __construct(private readonly \Closure $pay) {}

            #[CommandHandler]
            public function pay(PayByCard $command): void
            {
                ($this->pay)($command);
            }

            #[CommandHandler]
            public function refund(Refund $command): void
            {
                ($this->pay)($command);
            }
        };
    }
}

final class PayByCard
{
    /** @param list<int> $limits */
    public function __construct(
        public readonly string $customer,
        #[Encrypted]
        public readonly string $card,
        #[Encrypted]
        public readonly array $limits = [],
        #[Encrypted]
        public readonly ?string $note = null,
    ) {}
}

final class Refund
{
    public function __construct(
        public readonly string $customer,
        #[Encrypted]
        public readonly string $card,
    ) {}
}

final class Migrated
{
    public function __construct(
        #[Encrypted(acceptPlain: true)]
        public readonly string $card,
    ) {}
}

#[OrderedBy('card')]
final class OrderedBySecret
{
    public function __construct(
        #[Encrypted]
        public readonly string $card,
    ) {}
}
