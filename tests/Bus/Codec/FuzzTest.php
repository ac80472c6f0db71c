<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Codec;

use Weft\Bus\Bus;
use Weft\Bus\CommandHandler;
use Weft\Bus\Header;
use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\Internal\Codec\MessageClass;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Outgoing;
use Weft\Tests\Bus\BusTestCase;
use Weft\Tests\Bus\Fixtures\Item;
use Weft\Tests\Bus\Fixtures\Measured;
use Weft\Tests\Bus\Fixtures\Order;

require_once __DIR__ . '/../Fixtures/messages.php';

/** Random damage to messages; WEFT_FUZZ_SEED repeats a run, WEFT_FUZZ_ROUNDS makes it longer. */
final class FuzzTest extends BusTestCase
{
    private int $seed;

    protected function setUp(): void
    {
        $this->seed = (int) (\getenv('WEFT_FUZZ_SEED') ?: \random_int(1, 1_000_000_000));
        \mt_srand($this->seed);
    }

    public function testAnyInputIsDecodedOrRefusedAndADecodedMessageCanBeEncoded(): void
    {
        $class = (new Codec())->of(Order::class);
        $decoded = $refused = 0;
        for ($round = 0; $round < $this->rounds(); $round++) {
            $body = $this->damaged(self::valid($class));
            try {
                $message = $class->decode($body);
                self::assertEquals($message, $class->decode($class->encode($message)), $this->repeat($body));
                $decoded++;
            } catch (MessageDecodingException) {
                $refused++;
            } catch (\Throwable $thrown) {
                self::fail($thrown::class . ": {$thrown->getMessage()}, " . $this->repeat($body));
            }
        }
        self::assertGreaterThan(0, $decoded, $this->repeat(''));
        self::assertGreaterThan(0, $refused, $this->repeat(''));
    }

    public function testEveryDamagedMessageIsHandledOrDeadLetteredWithItsBytes(): void
    {
        $this->inRuntime(function (): void {
            $handler = new class {
                public int $handled = 0;

                #[CommandHandler]
                public function place(Order $order): void
                {
                    $this->handled++;
                }
            };
            $broker = new Memory();
            $bus = Bus::connect($broker)->handlers($handler);
            $bus->queue(self::QUEUE)->declare();
            $class = (new Codec())->of(Order::class);
            $bodies = [];
            for ($round = 0; $round < 500; $round++) {
                $bodies[] = $this->damaged(self::valid($class));
            }
            $broker->publish(\array_map(static fn(string $body): Outgoing => new Outgoing(Order::class, $body, [Header::KIND => 'command']), $bodies));

            self::assertSame(500, self::drain($bus));
            $letters = $bus->queue(self::QUEUE)->deadLetters()->peek(500);
            self::assertSame(500, $handler->handled + \count($letters), $this->repeat(''));
            self::assertSame([], \array_diff(\array_column($letters, 'body'), $bodies), $this->repeat(''));
        });
    }

    public function testMixedValuesCrossUnchanged(): void
    {
        $class = (new Codec())->of(Measured::class);
        for ($round = 0; $round < $this->rounds(); $round++) {
            $message = new Measured(\mt_rand() / 1000, $this->value(3));

            self::assertEquals($message, $class->decode($class->encode($message)), $this->repeat($class->encode($message)));
        }
    }

    private static function valid(MessageClass $class): string
    {
        $order = Order::place(\mt_rand(), new Item('a', 1.5, ['k' => 'v']), new Item('b', 2.0))->comesFrom('fuzz');
        $order->grid = [[1], [2, 3]];
        $order->shelf = [3 => new Item('c', 0.0), 4 => null];
        $order->replaces = \mt_rand(0, 1) === 1 ? Order::place(1) : null;

        return $class->encode($order);
    }

    private function damaged(string $body): string
    {
        return match (\mt_rand(0, 5)) {
            0 => \substr($body, 0, \mt_rand(0, \strlen($body))),
            1 => $this->withRandomBytes($body),
            2 => (string) \json_encode($this->value(4)),
            3 => \random_bytes(\mt_rand(1, 40)),
            default => (string) \json_encode($this->altered(\json_decode($body)), \JSON_PRESERVE_ZERO_FRACTION | \JSON_PARTIAL_OUTPUT_ON_ERROR),
        };
    }

    private function withRandomBytes(string $body): string
    {
        for ($count = \mt_rand(1, 3); $count > 0; $count--) {
            $body[\mt_rand(0, \strlen($body) - 1)] = \chr(\mt_rand(0, 255));
        }

        return $body;
    }

    /** Replaces, removes or adds something somewhere. */
    private function altered(mixed $value): mixed
    {
        if ((!\is_object($value) && !\is_array($value)) || \mt_rand(0, 9) === 0) {
            return \mt_rand(0, 2) === 0 ? $this->value(2) : $value;
        }
        $members = (array) $value;
        foreach ($members as $name => $member) {
            match (\mt_rand(0, 12)) {
                0 => $members[$name] = $this->value(2),
                1, 2, 3, 4 => $members[$name] = $this->altered($member),
                default => null,
            };
        }
        if (\mt_rand(0, 9) === 0 && $members !== []) {
            unset($members[\array_rand($members)]);
        }
        if (\mt_rand(0, 9) === 0) {
            $members['extra'] = $this->value(1);
        }

        return \is_object($value) ? (object) $members : $members;
    }

    private function value(int $depth): mixed
    {
        return match (\mt_rand(0, $depth > 0 ? 11 : 9)) {
            0 => null,
            1 => true,
            2 => false,
            3 => \mt_rand(-5, 5),
            4 => \PHP_INT_MAX - \mt_rand(0, 1),
            5 => \mt_rand(-100, 100) / 8,
            6 => 1e300 * \mt_rand(1, 9),
            7 => '',
            8 => ['EUR', '2026-01-01T00:00:00Z', "\u{0}", 'é', '0', "\u{2028}"][\mt_rand(0, 5)],
            9 => [],
            10 => \array_map(fn(): mixed => $this->value($depth - 1), \range(0, \mt_rand(0, 3))),
            default => ['a' => $this->value($depth - 1), '7' => $this->value($depth - 1), 'sku' => 'x'],
        };
    }

    private function rounds(): int
    {
        return (int) (\getenv('WEFT_FUZZ_ROUNDS') ?: 3_000);
    }

    private function repeat(string $body): string
    {
        return "repeat with WEFT_FUZZ_SEED={$this->seed}; body: {$body}";
    }
}
