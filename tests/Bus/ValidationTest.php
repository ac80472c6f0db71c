<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use Symfony\Component\Validator\Constraints as Assert;
use Weft\Bus\Batch;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\CommandHandler;
use Weft\Bus\Context;
use Weft\Bus\Encrypted;
use Weft\Bus\EventListener;
use Weft\Bus\InvalidHandlerError;
use Weft\Bus\InvalidMessageEvent;
use Weft\Bus\InvalidMessageException;
use Weft\Bus\KeyRing;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\MessageOptions;
use Weft\Bus\Retry;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Outgoing;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;
use Weft\Validation\Validate;
use Weft\Validation\Validator;
use Weft\Validation\Violation;

final class ValidationTest extends BusTestCase
{
    use TemporaryDatabase;

    public function testAnInvalidMessageIsDeadLetteredWithAllThatIsWrongAndTheHandlerNotCalled(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $bus = Bus::connect('memory:')->handlers(new class ($seen) {
                public function __construct(private array &$seen) {}

                #[CommandHandler]
                #[Validate]
                #[Retry(immediate: 5)]
                public function register(Register $command): void
                {
                    $this->seen[] = $command->email;
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->send(new Register('ada@example.org', 36, [new Tag('a')]));
            $bus->send(new Register('nobody', 7, [new Tag('b'), new Tag('')]));
            self::drain($bus);

            self::assertSame(['ada@example.org'], $seen);
            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame([InvalidMessageException::class, 1], [$letter->errorClass(), $letter->attempts()]);
            self::assertSame(
                Register::class . ' is invalid: email: This value is not a valid email address.; age: This value should be 18 or more.; '
                    . 'tags[1].name: This value should not be blank.',
                $letter->errorMessage(),
            );
        });
    }

    public function testViolationsGoToTheHandlerThatWantsThem(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $bus = Bus::connect('memory:')->handlers(new class ($seen) {
                public function __construct(private array &$seen) {}

                #[CommandHandler]
                #[Validate(passOn: true)]
                public function register(Register $command, Context $context): void
                {
                    $this->seen[] = \array_map(static fn(Violation $violation): string => $violation->path, $context->violations());
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->send(new Register('nobody', 7));
            $bus->send(new Register('ada@example.org', 36));
            self::drain($bus);

            self::assertSame([['email', 'age'], []], $seen);
            self::assertSame(2, $bus->admin()->stats()->commands);
        });
    }

    public function testAnInvalidMessageIsAnsweredWithAnEventInItsTransaction(): void
    {
        $this->inRuntime(function (): void {
            $heard = [];
            $bus = Bus::connect('memory:', Database::connect($this->dsn()))->handlers(new class ($heard) {
                public function __construct(private array &$heard) {}

                #[CommandHandler]
                #[Validate(event: RegistrationRejected::class)]
                public function register(Register $command, Transaction $transaction): void
                {
                    throw new \LogicException('it is invalid');
                }

                #[EventListener]
                public function rejected(RegistrationRejected $event): void
                {
                    $this->heard[] = [$event->email, $event->problems];
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->send(new Register('nobody', 36));
            self::drain($bus);

            self::assertSame([['nobody', ['email: This value is not a valid email address.']]], $heard);
            self::assertSame([1, 0], [$bus->admin()->stats()->commands, $bus->queue(self::QUEUE)->deadLetters()->count()]);
        });
    }

    public function testGroupsAndAValidatorOfOnesOwn(): void
    {
        $this->inRuntime(function (): void {
            $asked = [];
            $validator = new class ($asked) implements Validator {
                public function __construct(private array &$asked) {}

                public function validate(object $message, array $groups): array
                {
                    $this->asked[] = [$message->email, $groups];

                    return $message->age > 17 ? [] : [new Violation('', 'too young')];
                }
            };
            $bus = Bus::connect('memory:', options: new BusOptions(validator: $validator))->handlers(new #[Validate(groups: ['strict'])] class {
                #[CommandHandler]
                public function register(Register $command): void {}
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->send(new Register('nobody', 7));
            $bus->send(new Register('nobody', 70));
            self::drain($bus);

            self::assertSame([['nobody', ['strict']], ['nobody', ['strict']]], $asked);
            self::assertSame(Register::class . ' is invalid: too young', $bus->queue(self::QUEUE)->deadLetters()->peek()[0]->errorMessage());
            self::assertSame(1, $bus->admin()->stats()->commands);
        });
    }

    public function testInABatchOnlyTheInvalidItemsFail(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $bus = Bus::connect('memory:')->handlers(new class ($seen) {
                public function __construct(private array &$seen) {}

                #[CommandHandler]
                #[Batch(Register::class)]
                #[Validate]
                public function register(array $items): void
                {
                    foreach ($items as $item) {
                        $this->seen[] = $item->message->email;
                    }
                }
            });
            $bus->queue(self::QUEUE)->declare();
            foreach (['a@example.org', 'nobody', 'b@example.org'] as $email) {
                $bus->send(new Register($email, 36));
            }
            self::drain($bus);

            self::assertSame(['a@example.org', 'b@example.org'], $seen);
            self::assertSame(InvalidMessageException::class, $bus->queue(self::QUEUE)->deadLetters()->peek()[0]->errorClass());
        });
    }

    public function testAViolationDoesNotQuoteAnEncryptedValue(): void
    {
        $this->inRuntime(function (): void {
            $bus = Bus::connect('memory:', options: new BusOptions(messages: new MessageOptions(keys: new KeyRing('a', ['a' => KeyRing::generate()]))))->handlers(new class {
                #[CommandHandler]
                #[Validate]
                public function login(Login $command): void {}
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->send(new Login('ada!', 'secret', [new Secret('secret')]));
            self::drain($bus);

            $error = $bus->queue(self::QUEUE)->deadLetters()->peek()[0]->errorMessage();
            self::assertStringContainsString('user: "ada!" is not a name', $error);
            self::assertStringContainsString('password: {{ value }} is too easy', $error);
            self::assertStringContainsString('more[0].value: {{ value }} is too easy', $error);
            self::assertStringNotContainsString('secret', $error);
        });
    }

    public function testABodyThatDoesNotFitTheTypesNeverReachesTheValidator(): void
    {
        $this->inRuntime(function (): void {
            $broker = new Memory();
            $bus = Bus::connect($broker)->handlers(new class {
                #[CommandHandler]
                #[Validate(passOn: true)]
                public function register(Register $command): void {}
            });
            $bus->queue(self::QUEUE)->declare();
            $broker->publish([new Outgoing(Register::class, '{"email":"a@example.org","age":"36"}', [])]);
            self::drain($bus);

            self::assertSame(MessageDecodingException::class, $bus->queue(self::QUEUE)->deadLetters()->peek()[0]->errorClass());
        });
    }

    public function testAnInvalidRuleIsNamed(): void
    {
        foreach (
            [
            'not both' => static fn() => new Validate(passOn: true, event: RegistrationRejected::class),
            'must implement ' . InvalidMessageEvent::class => static fn() => Bus::connect('memory:')->handlers(new class {
                #[CommandHandler]
                #[Validate(event: Register::class)]
                public function register(Register $command): void {}
            }),
            ] as $message => $make
        ) {
            try {
                $make();
                self::fail('it was taken');
            } catch (\ValueError | InvalidHandlerError $error) {
                self::assertStringContainsString($message, $error->getMessage());
            }
        }
    }
}

final class Register
{
    /** @param list<Tag> $tags */
    public function __construct(
        #[Assert\Email]
        public readonly string $email,
        #[Assert\GreaterThanOrEqual(18, message: 'This value should be {{ compared_value }} or more.')]
        public readonly int $age,
        #[Assert\Valid]
        public readonly array $tags = [],
    ) {}
}

final class Login
{
    /** @param list<Secret> $more */
    public function __construct(
        #[Assert\Regex('/^\w+$/', message: '{{ value }} is not a name')]
        public readonly string $user,
        #[Encrypted]
        #[Assert\Regex('/\d/', message: '{{ value }} is too easy')]
        public readonly string $password,
        #[Assert\Valid]
        public readonly array $more = [],
    ) {}
}

final class Secret
{
    public function __construct(
        #[Encrypted]
        #[Assert\Regex('/\d/', message: '{{ value }} is too easy')]
        public readonly string $value,
    ) {}
}

final class Tag
{
    public function __construct(
        #[Assert\NotBlank]
        public readonly string $name,
    ) {}
}

final class RegistrationRejected implements InvalidMessageEvent
{
    /** @param list<string> $problems */
    public function __construct(public readonly string $email, public readonly array $problems) {}

    public static function of(object $message, Violation ...$violations): static
    {
        return new self($message->email, \array_map('strval', $violations));
    }
}
