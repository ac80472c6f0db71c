<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Bus\Batch;
use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\ClaimCheck;
use Weft\Bus\Claims\DatabaseStore;
use Weft\Bus\Claims\FilesystemStore;
use Weft\Bus\ClaimLostException;
use Weft\Bus\ClaimStore;
use Weft\Bus\ClaimUnavailableException;
use Weft\Bus\CommandHandler;
use Weft\Bus\DuplicateMessageIdException;
use Weft\Bus\Header;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\MessageOptions;
use Weft\Bus\PublishException;
use Weft\Bus\Retry;
use Weft\Bus\SendOptions;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Outgoing;
use Weft\Sql\ConnectionRefusedException;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Tests\Bus\Fixtures\CustomerStored;
use Weft\Tests\Bus\Fixtures\MariaDb;
use Weft\Tests\Bus\Fixtures\Servers;
use Weft\Tests\Bus\Fixtures\SpyTransport;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;
use Weft\Tests\Runtime\Subprocess;

use function Weft\async;

final class ClaimCheckTest extends BusTestCase
{
    use MariaDb;
    use Servers;
    use TemporaryDatabase;

    public function testABodyInADirectoryIsForTheAccountThatHasWrittenItAlone(): void
    {
        $umask = \umask(0);
        try {
            (new FilesystemStore($this->directory))->put('1', 'secret');
            self::assertSame(0, \umask(0), 'the mask of the process is as it was');
        } finally {
            \umask($umask);
        }
        $files = \glob("{$this->directory}/claim-*") ?: [];

        self::assertCount(1, $files);
        self::assertSame('600', \decoct(\fileperms($files[0]) & 0o777));
    }

    public function testTheNameOfABodyInADirectoryIsOnTheDiskAsWellAsTheBody(): void
    {
        \is_executable('/usr/bin/strace') || self::markTestSkipped('strace is not installed');
        $trace = "{$this->directory}/trace";
        $claims = "{$this->directory}/claims";
        \mkdir($claims);
        $program = Subprocess::run("(new Weft\\Bus\\Claims\\FilesystemStore('{$claims}'))->put('1', 'body');", under: ['/usr/bin/strace', '-y', '-e', 'trace=fsync,rename,renameat,renameat2', '-o', $trace]);
        if (\str_contains($program->errors, 'ptrace')) {
            self::markTestSkipped("the system allows no tracing: {$program->errors}");
        }
        self::assertSame([0, ''], [$program->exitCode, $program->errors]);
        $pattern = \preg_quote($claims, '{');

        self::assertMatchesRegularExpression("{^fsync\\(\\d+<{$pattern}/claim-\\w+\\.\\w+>\\) += 0\nrename.* = 0\nfsync\\(\\d+<{$pattern}>\\) += 0$}m", (string) \file_get_contents($trace));
    }

    /** @dataProvider stores */
    #[DataProvider('stores')]
    public function testALargeBodyIsKeptInTheStoreAndArrivesWhole(string $store): void
    {
        $this->inRuntime(function () use ($store): void {
            $seen = $sizes = [];
            $spy = new SpyTransport(new Memory());
            $spy->before = static function (string $what, array $messages) use (&$sizes): void {
                foreach ($messages as $message) {
                    $sizes[] = \strlen($message->body);
                }
            };
            $bus = Bus::connect($spy, options: new BusOptions(messages: new MessageOptions(claims: new ClaimCheck($this->store($store), threshold: 1000))))->handlers(self::storing(static function (StoreCustomer $command) use (&$seen): void {
                $seen[] = [$command->id, \strlen($command->name)];
            }));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(new StoreCustomer('1', \str_repeat('é', 500_000), 'e'));
            $bus->send(new StoreCustomer('2', 'short', 'e'));
            self::drain($bus);

            \sort($seen);
            self::assertSame([['1', 1_000_000], ['2', 5]], $seen);
            self::assertLessThan(300, \max($sizes));
        });
    }

    /** @return iterable<string, array{string}> */
    public static function stores(): iterable
    {
        yield 'a directory' => ['directory'];
        yield 'SQLite' => ['sqlite'];
        yield 'PostgreSQL' => ['postgres'];
        yield 'MariaDB or MySQL' => ['mariadb'];
    }

    /** @dataProvider stores */
    #[DataProvider('stores')]
    public function testOldBodiesAreForgottenAndAMessageWithoutItsBodyIsDeadLettered(string $store): void
    {
        $this->inRuntime(function () use ($store): void {
            $claims = new ClaimCheck($this->store($store), threshold: 0, retention: 3600.0);
            $bus = Bus::connect('memory:', options: new BusOptions(messages: new MessageOptions(claims: $claims)))->handlers(self::storing(static fn() => null));
            $bus->queue(self::QUEUE)->declare();
            $id = $bus->send(self::customer(7));
            self::assertSame([0, 0, 0], [$bus->admin()->prune(), $claims->store->prune(1e19), $claims->store->prune(\INF)]);
            self::assertSame(1, $claims->store->prune(-10.0));
            self::assertNull($claims->store->get($id));
            self::drain($bus);

            [$letter] = $bus->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame([ClaimLostException::class, 'The body ' . $id . ' of a ' . StoreCustomer::class . ' is not in the store'], [$letter->errorClass(), $letter->errorMessage()]);
            $claims->store->put($id, '{"id":"7","name":"name_7","email":"name@example.org"}');
            $bus->queue(self::QUEUE)->deadLetters()->retry();
            self::drain($bus);
            self::assertSame(1, $bus->admin()->stats()->commands, 'with its body back it is handled');
        });
    }

    public function testAnotherBodyThanTheOneThatWasPutIsDeadLetteredAndSoIsAnIdWithTwoBodies(): void
    {
        $this->inRuntime(function (): void {
            $store = $this->store('directory');
            $broker = new Memory();
            $bus = Bus::connect($broker, Database::connect($this->dsn()), new BusOptions(messages: new MessageOptions(claims: new ClaimCheck($store, threshold: 0))))->handlers(new class {
                #[CommandHandler]
                public function store(StoreCustomer $command, Transaction $transaction): void {}
            });
            $bus->queue(self::QUEUE)->declare();
            $id = $bus->send(self::customer(7));
            $store->put($id, '{"id":"8","name":"x","email":"y"}');
            self::drain($bus);
            self::assertStringContainsString('does not match the hash in the message', $bus->queue(self::QUEUE)->deadLetters()->peek()[0]->errorMessage());

            $ticket = static fn(string $body): Outgoing => new Outgoing(StoreCustomer::class, \json_encode(['weft-claim' => 'two', 'sha256' => \hash('sha256', $body)]), [
                Header::MESSAGE_ID => 'two', Header::CLAIM => 'two', Header::KIND => 'command',
            ]);
            foreach (['{"id":"1","name":"a","email":"e"}', '{"id":"2","name":"a","email":"e"}'] as $body) {
                $store->put('two', $body);
                $broker->publish([$ticket($body)]);
                self::drain($bus);
            }
            self::assertSame([1, DuplicateMessageIdException::class], [$bus->admin()->stats()->commands, $bus->queue(self::QUEUE)->deadLetters()->peek()[1]->errorClass()]);
        });
    }

    public function testAReceiverWithoutTheStoreDeadLettersTheMessageAndAStoreThatFailsFailsTheSending(): void
    {
        $this->inRuntime(function (): void {
            $broker = new Memory();
            $sender = Bus::connect($broker, options: new BusOptions(messages: new MessageOptions(claims: new ClaimCheck($this->store('directory'), threshold: 0))));
            $receiver = Bus::connect($broker)->handlers(self::storing(static fn() => null));
            $receiver->queue(self::QUEUE)->declare();
            $sender->send(self::customer(7));
            self::drain($receiver);
            [$letter] = $receiver->queue(self::QUEUE)->deadLetters()->peek();
            self::assertSame(MessageDecodingException::class, $letter->errorClass());
            self::assertStringContainsString('its body is in a claim-check store: pass the ClaimCheck of its sender to Bus::connect()', $letter->errorMessage());

            $full = new class implements ClaimStore {
                public function put(string $id, string $body): void
                {
                    throw new PublishException('no space left');
                }

                public function get(string $id): ?string
                {
                    return null;
                }

                public function prune(float $seconds): int
                {
                    return 0;
                }
            };
            $this->expectException(PublishException::class);
            Bus::connect($broker, options: new BusOptions(messages: new MessageOptions(claims: new ClaimCheck($full, threshold: 0))))->send(self::customer(8));
        });
    }

    public function testAnEditedLetterBringsItsBodyWithIt(): void
    {
        $this->inRuntime(function (): void {
            $seen = [];
            $bus = Bus::connect('memory:', options: new BusOptions(messages: new MessageOptions(claims: new ClaimCheck($this->store('directory'), threshold: 0))))->handlers(self::storing(static function (StoreCustomer $command) use (&$seen): void {
                $seen[] = $command->name;
                $command->name === 'name_1' && throw new \DomainException('no');
            }));
            $bus->queue(self::QUEUE)->declare();
            $id = $bus->send(self::customer(1));
            self::drain($bus);
            self::assertTrue($bus->queue(self::QUEUE)->deadLetters()->edit($id, '{"id":"1","name":"another","email":"e"}'));
            $bus->queue(self::QUEUE)->deadLetters()->retry();
            self::drain($bus);

            self::assertSame([['name_1', 'another'], 0], [$seen, $bus->queue(self::QUEUE)->deadLetters()->count()]);
        });
    }

    /** @dataProvider waysToHandle */
    #[DataProvider('waysToHandle')]
    public function testAStoreThatIsAwayForAWhileDeadLettersNothing(bool $batch): void
    {
        $this->inRuntime(function () use ($batch): void {
            $store = new class ($this->store('directory')) implements ClaimStore {
                public int $fails = 3;

                public function __construct(private readonly ClaimStore $inner) {}

                public function put(string $id, string $body): void
                {
                    $this->inner->put($id, $body);
                }

                public function get(string $id): ?string
                {
                    return $this->fails-- > 0 ? throw new ConnectionRefusedException('nobody there') : $this->inner->get($id);
                }

                public function prune(float $seconds): int
                {
                    return 0;
                }
            };
            $seen = new \ArrayObject();
            $bus = Bus::connect('memory:', Database::connect($this->dsn()), new BusOptions(messages: new MessageOptions(claims: new ClaimCheck($store, threshold: 0))))->handlers($batch ? new class ($seen) {
                public function __construct(private readonly \ArrayObject $seen) {}

                #[CommandHandler]
                #[Batch(StoreCustomer::class, size: 2)]
                public function store(array $items): void
                {
                    foreach ($items as $item) {
                        $this->seen[] = $item->message->id;
                    }
                }
            } : self::storing(static fn(StoreCustomer $command) => $seen[] = $command->id));
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(4));
            self::drain($bus);

            $ids = $seen->getArrayCopy();
            \sort($ids);
            self::assertSame([['1', '2', '3', '4'], 0, 0], [$ids, $bus->admin()->stats()->failed, $bus->queue(self::QUEUE)->deadLetters()->count()]);
        });
    }

    /** @dataProvider waysToBeAway */
    #[DataProvider('waysToBeAway')]
    public function testADirectoryThatIsAwayForAWhileDeadLettersNothing(string $way): void
    {
        $this->inRuntime(function () use ($way): void {
            $claims = $this->store('directory');
            $directory = "{$this->directory}/claims";
            $seen = [];
            $database = Database::connect($this->dsn());
            $bus = Bus::connect('memory:', $database, new BusOptions(messages: new MessageOptions(claims: new ClaimCheck($claims, threshold: 0))))->handlers(new class ($seen) {
                public function __construct(private array &$seen) {}

                #[CommandHandler]
                #[Retry(delayed: 1, delay: 3600.0)]
                public function store(StoreCustomer $command): void
                {
                    $this->seen[] = $command->id;
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $bus->sendAll(self::customers(5));
            \rename($directory, "{$directory}.away");
            if ($way === 'a mount point') {
                \mkdir($directory);
            } elseif ($way === 'something else') {
                \touch($directory);
            }
            try {
                $claims->get('1');
                self::fail('the directory is away');
            } catch (ClaimUnavailableException $away) {
                self::assertStringStartsWith("The body 1 cannot be read, because {$directory} is not the directory of the store at present", $away->getMessage());
            }
            self::drain($bus);
            self::assertSame([5, 0], [$bus->admin()->backlog()['delayed'], $bus->queue(self::QUEUE)->deadLetters()->count()]);

            $way === 'a mount point' && \rmdir($directory);
            $way === 'something else' && \unlink($directory);
            \rename("{$directory}.away", $directory);
            $database->execute('UPDATE weft_delayed SET due = 1');
            $bus->admin()->releaseDue();
            self::drain($bus);
            \sort($seen);
            self::assertSame([['1', '2', '3', '4', '5'], null], [$seen, $claims->get('none of that name')]);
        });
    }

    /** @return iterable<string, array{string}> */
    public static function waysToBeAway(): iterable
    {
        yield 'no directory' => ['nothing'];
        yield 'an empty directory in its place' => ['a mount point'];
        yield 'a file in its place' => ['something else'];
    }

    public function testABodyThatTheAccountMayNotReadIsNotLost(): void
    {
        $store = $this->store('directory');
        $store->put('1', 'body');
        [$file] = \glob("{$this->directory}/claims/claim-*") ?: [];
        \unlink($file);
        // A file that cannot be read, also by root.
        \mkdir($file);

        $this->expectException(ClaimUnavailableException::class);
        $this->expectExceptionMessage("The body 1 in {$this->directory}/claims cannot be read");
        $store->get('1');
    }

    /** @dataProvider waysToHandle */
    #[DataProvider('waysToHandle')]
    public function testAHandlerThatHasReadInItsTransactionSendsALargeMessageThatIsStoredWithIt(bool $batch): void
    {
        $this->inRuntime(function () use ($batch): void {
            $database = Database::connect($this->dsn() . '?transaction_timeout=2');
            $bus = Bus::connect('memory:', $database, new BusOptions(retry: new Retry(immediate: 1), messages: new MessageOptions(claims: new ClaimCheck(new DatabaseStore($database), threshold: 100))));
            $seen = new \ArrayObject();
            $send = static function (StoreCustomer $command, Transaction $transaction) use ($bus, $seen): void {
                $transaction->execute('SELECT count(*) FROM weft_claim_checks')->value();
                $bus->publish(new CustomerStored(\str_repeat('x', 1000)));
                $seen[] = $command->id;
                \count($seen) > 1 || throw new \RuntimeException('nothing of this attempt stays');
            };
            $bus->handlers($batch ? new class ($send) {
                public function __construct(private readonly \Closure $send) {}

                #[CommandHandler]
                #[Batch(StoreCustomer::class, size: 2)]
                public function store(array $items, Transaction $transaction): void
                {
                    foreach ($items as $item) {
                        ($this->send)($item->message, $transaction);
                    }
                }
            } : new class ($send) {
                public function __construct(private readonly \Closure $send) {}

                #[CommandHandler]
                public function store(StoreCustomer $command, Transaction $transaction): void
                {
                    ($this->send)($command, $transaction);
                }
            }, self::listening(static fn(CustomerStored $event) => $seen[] = \strlen($event->id)));
            $bus->queue(self::QUEUE)->declare();
            $bus->send(self::customer(1));
            self::drain($bus);

            self::assertSame([['1', '1', 1000], 1], [$seen->getArrayCopy(), $database->execute('SELECT count(*) FROM weft_claim_checks')->value()]);
        });
    }

    public function testALargeAnswerOfAHandlerThatHasReadInItsTransactionArrives(): void
    {
        $this->inRuntime(function (): void {
            $database = Database::connect($this->dsn() . '?transaction_timeout=2');
            $bus = Bus::connect('memory:', $database, new BusOptions(messages: new MessageOptions(claims: new ClaimCheck(new DatabaseStore($database), threshold: 100))))->handlers(new class {
                #[CommandHandler]
                public function store(StoreCustomer $command, Transaction $transaction): CustomerStored
                {
                    $transaction->execute('SELECT count(*) FROM weft_claim_checks')->value();

                    return new CustomerStored(\str_repeat('x', 1000));
                }
            });
            $bus->queue(self::QUEUE)->declare();
            $answer = async(static fn(): mixed => $bus->request(self::customer(1), CustomerStored::class, 20.0));
            $consuming = async(static fn(): int => $bus->consume(self::QUEUE));

            self::assertSame(1000, \strlen($answer->await()->id));
            $bus->stop();
            $consuming->await();
        });
    }

    /** @return iterable<string, array{bool}> */
    public static function waysToHandle(): iterable
    {
        yield 'one by one' => [false];
        yield 'in batches' => [true];
    }

    public function testADelayThatIsLongerThanTheBodyIsStoredIsRefused(): void
    {
        $this->inRuntime(function (): void {
            $claims = new ClaimCheck(new FilesystemStore($this->directory), threshold: 30, retention: 3600.0);
            $bus = Bus::connect('memory:', Database::connect($this->dsn()), new BusOptions(messages: new MessageOptions(claims: $claims)));
            $bus->publish(new CustomerStored('1'), new SendOptions(delay: 7200.0));
            $bus->send(self::customer(1), new SendOptions(delay: 1800.0));
            foreach ([new SendOptions(delay: 7200.0), new SendOptions(at: new \DateTimeImmutable('+3 days'))] as $late) {
                try {
                    $bus->send(self::customer(2), $late);
                    self::fail('its body is deleted before');
                } catch (\ValueError $error) {
                    self::assertMatchesRegularExpression('/^Message .*StoreCustomer is delayed by (7200|259200) seconds, but its body is stored for 3600 seconds: raise the retention/', $error->getMessage());
                }
            }
            self::assertSame([2, 1], [$bus->admin()->backlog()['delayed'], \count(\glob("{$this->directory}/claim-*") ?: [])]);
            $bus->close();
        });
    }

    public function testAnIdFromAMessageNamesNoOtherFile(): void
    {
        $store = $this->store('directory');
        \file_put_contents("{$this->directory}/secret", 'secret');

        self::assertNull($store->get('../secret'));
        self::assertNull($store->get("{$this->directory}/secret"));
        self::assertNull($store->get("a\0b"));
        $this->expectException(\ValueError::class);
        new FilesystemStore("{$this->directory}/secret");
    }

    private function store(string $name): ClaimStore
    {
        if ($name === 'directory') {
            \is_dir("{$this->directory}/claims") || \mkdir("{$this->directory}/claims");

            return new FilesystemStore("{$this->directory}/claims");
        }

        return new DatabaseStore(match ($name) {
            'sqlite' => Database::connect($this->dsn()),
            'postgres' => Database::connect($this->databaseDsn()),
            'mariadb' => $this->mariaDb(),
        });
    }
}
