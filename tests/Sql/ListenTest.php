<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use PHPUnit\Framework\TestCase;
use Weft\Pool\PoolOptions;
use Weft\Runtime\CancelledException;
use Weft\Runtime\TimeoutException;
use Weft\Sql\AuthenticationException;
use Weft\Sql\ConnectionRefusedException;
use Weft\Sql\Database;
use Weft\Sql\Listener;
use Weft\Sql\Notification;
use Weft\Sql\NotificationsMissed;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;
use Weft\UsageError;
use Weft\Tests\Sql\Support\Proxy;
use Weft\Tests\Sql\Support\Witness;

use function Weft\async;
use function Weft\delay;
use function Weft\run;
use function Weft\timeout;

/** LISTEN and NOTIFY of PostgreSQL. */
final class ListenTest extends TestCase
{
    use Witness;

    private const DEADLINE = 60.0;

    private Database $db;

    private string $channel;

    protected function setUp(): void
    {
        $this->db = Database::connect(self::postgres(), new PoolOptions(size: 2));
        $this->channel = 'Weft "' . \bin2hex(\random_bytes(6)) . '" ä';
    }

    protected function tearDown(): void
    {
        $this->db->close();
    }

    public function testANotificationArrivesWithItsChannelPayloadAndSender(): void
    {
        $listener = $this->db->listen($this->channel);

        $this->db->notify($this->channel, "päyload\n'quoted'");
        $pid = $this->db->execute('SELECT pg_backend_pid()')->value();
        $this->db->notify($this->channel);

        self::assertEquals(new Notification($this->channel, "päyload\n'quoted'", $pid), $listener->next());
        self::assertEquals(new Notification($this->channel, '', $pid), $listener->next());
        $listener->close();
    }

    public function testALoopOverSeveralChannelsSeesEveryNotificationInOrder(): void
    {
        $seen = [];
        run(function () use (&$seen): void {
            $listener = $this->db->listen([$this->channel, 'weft_other']);
            $sender = async(function (): void {
                foreach (\range(1, 3_000) as $n) {
                    $this->db->notify($n % 2 === 0 ? $this->channel : 'weft_other', (string) $n);
                }
            });
            foreach ($listener as $notification) {
                $seen[] = (int) $notification->payload;
                if ($notification->payload === '3000') {
                    break;
                }
            }
            $sender->await();
        });

        self::assertSame(\range(1, 3_000), $seen);
    }

    public function testANotificationOfATransactionLeavesWithItsCommit(): void
    {
        run(function (): void {
            $listener = $this->db->listen($this->channel);
            $this->db->transaction(function (Transaction $tx) use ($listener): void {
                $tx->notify($this->channel, 'committed');
                $tx->flush();
                self::thrown(TimeoutException::class, static fn () => timeout(0.1, $listener->next(...)));
            });
            self::thrown(\DomainException::class, fn () => $this->db->transaction(function (Transaction $tx): void {
                $tx->notify($this->channel, 'rolled back');
                $tx->flush();
                throw new \DomainException();
            }));
            $this->db->notify($this->channel, 'last');

            self::assertSame(['committed', 'last'], [self::payload($listener), self::payload($listener)]);
        });
    }

    public function testACancelledWaitLosesNothing(): void
    {
        run(function (): void {
            $listener = $this->db->listen($this->channel);
            $sender = async(function (): void {
                foreach (\range(1, 200) as $n) {
                    $this->db->notify($this->channel, (string) $n);
                }
            });
            $seen = [];
            while (\count($seen) < 200) {
                try {
                    timeout(0.0003, static function () use ($listener, &$seen): void {
                        $seen[] = (int) self::payload($listener);
                    });
                } catch (TimeoutException) {
                }
            }
            $sender->await();

            self::assertSame(\range(1, 200), $seen);
        });
    }

    public function testALostConnectionIsMadeAgainAndTold(): void
    {
        run(function (): void {
            $listener = $this->db->listen($this->channel);
            $this->db->notify($this->channel, 'before');
            self::assertSame('before', self::payload($listener));
            foreach ([1, 2] as $time) {
                $this->db->execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND query LIKE ?", ["%{$this->suffix()}%"]);
                self::eventually(fn (): bool => $this->listening() === 0, 'the end of the session');
                $this->db->notify($this->channel, 'while nobody listens');

                $missed = timeout(self::DEADLINE, $listener->next(...));
                self::assertInstanceOf(NotificationsMissed::class, $missed);
                self::assertStringContainsString('terminating connection', $missed->reason);
                $this->db->notify($this->channel, "after {$time}");
                self::assertSame("after {$time}", self::payload($listener));
            }
        });
    }

    public function testNotificationsThatCameBeforeTheLossAreNotLost(): void
    {
        $this->behindProxy(function (Database $db, Proxy $proxy): void {
            $listener = $db->listen($this->channel);
            $before = $proxy->received();
            $bytes = 0;
            foreach (\range(1, 2_500) as $n) {
                $this->db->notify($this->channel, (string) $n);
                // NotificationResponse: type, length, process, and two strings that end with a zero.
                $bytes += 1 + 4 + 4 + \strlen($this->channel) + 1 + \strlen((string) $n) + 1;
            }
            self::eventually(static fn (): bool => $proxy->received() >= $before + $bytes, 'all notifications sent');
            $proxy->cut();

            foreach (\range(1, 2_500) as $n) {
                self::assertSame((string) $n, self::payload($listener));
            }
            self::assertInstanceOf(NotificationsMissed::class, timeout(self::DEADLINE, $listener->next(...)));
            $listener->close();
        });
    }

    public function testAServerThatFallsSilentIsNoticed(): void
    {
        $this->behindProxy(function (Database $db, Proxy $proxy): void {
            $listener = $db->listen($this->channel, check: 1.0);
            $proxy->trips();
            $first = async(static fn () => $listener->next());
            $checks = 0;
            self::eventually(static function () use ($proxy, &$checks): bool {
                return ($checks += $proxy->trips()) >= 3;
            }, 'three checks');
            self::assertFalse($first->isDone(), 'a server that answers is not taken for lost');
            $this->db->notify($this->channel, 'heard');
            self::assertSame('heard', $first->await()->payload);
            $proxy->hold();
            $waiting = async(static fn () => $listener->next());
            self::eventually(static fn (): bool => $proxy->accepted() === 2, 'another connection');
            $proxy->release();

            $missed = timeout(self::DEADLINE, static fn () => $waiting->await());
            self::assertInstanceOf(NotificationsMissed::class, $missed);
            self::assertStringContainsString('no answer within', $missed->reason);
            $this->db->notify($this->channel, 'heard again');
            self::assertSame('heard again', self::payload($listener));
            $listener->close();
        });
    }

    public function testANotificationIsNotReadBeforeItIsAskedFor(): void
    {
        run(function (): void {
            $listener = $this->db->listen($this->channel);
            $payload = \str_repeat('x', 7_900);
            $this->db->executeMany('SELECT pg_notify(?, ?)', (function () use ($payload): iterable {
                for ($n = 0; $n < 10_000; $n++) {
                    yield [$this->channel, $payload . $n];
                }
            })());
            $before = self::residentBytes();
            delay(0.5);
            self::assertLessThan(8 << 20, self::residentBytes() - $before, 'bytes taken while nobody asked');
            for ($n = 0; $n < 10_000; $n++) {
                self::assertStringEndsWith("x{$n}", self::payload($listener));
            }
        });
    }

    public function testAListenerDoesNotCountAsAConnectionOfThePoolAndEndsItsOwn(): void
    {
        $db = Database::connect(self::postgres(), new PoolOptions(size: 1));
        $listener = $db->listen($this->channel);
        self::assertSame(1, $db->execute('SELECT 1')->value());
        self::assertSame([1, 1], [$db->stats()['size'], $this->listening()]);

        $listener->close();
        self::eventually(fn (): bool => $this->listening() === 0, 'the end of the session');
        self::thrown(UsageError::class, static fn () => $listener->next());
        self::assertSame([], \iterator_to_array($listener));
        $db->close();
    }

    public function testALoopOverAListenerIsCancelledWithItsTask(): void
    {
        run(function (): void {
            $task = async(function (): void {
                foreach ($this->db->listen($this->channel) as $_) {
                }
            });
            delay(0.1);
            $task->cancel();
            self::thrown(CancelledException::class, static fn () => $task->await());
        });
    }

    public function testALoopOverAListenerEndsWhenAnotherTaskClosesIt(): void
    {
        run(function (): void {
            $listener = $this->db->listen($this->channel);
            $loop = async(static fn (): array => \iterator_to_array($listener, false));
            $next = async(static fn () => self::thrown(UsageError::class, static fn () => $listener->next()));
            delay(0.05);
            $listener->close();

            self::assertSame([], timeout(self::DEADLINE, static fn (): array => $loop->await()));
            timeout(self::DEADLINE, static fn () => $next->await());
        });
    }

    public function testNamesAndPayloadsThatPostgresDoesNotTakeAreRefused(): void
    {
        foreach ([[], '', \str_repeat('x', 64), "a\0b"] as $channels) {
            self::thrown(UsageError::class, fn () => $this->db->listen($channels));
        }
        self::thrown(\ValueError::class, fn () => $this->db->listen('a', check: 0.0));
        self::thrown(\ValueError::class, fn () => $this->db->listen('a', check: \NAN));
        self::thrown(SqlException::class, fn () => $this->db->notify(\str_repeat('x', 64)));
        self::thrown(SqlException::class, fn () => $this->db->notify('a', \str_repeat('x', 8_000)));
        self::thrown(SqlException::class, fn () => $this->db->notify(''));
        self::assertSame(1, $this->db->execute('SELECT 1')->value());
    }

    public function testADatabaseWithoutChannelsSaysSo(): void
    {
        $sqlite = Database::connect('sqlite::memory:');
        self::thrown(UsageError::class, static fn () => $sqlite->listen('a'));
        self::thrown(UsageError::class, static fn () => $sqlite->notify('a'));
        self::thrown(UsageError::class, static fn () => $sqlite->transaction(static fn (Transaction $tx) => $tx->notify('a')));
        $mysql = Database::connect('mysql://app@127.0.0.1:1/app');
        self::thrown(UsageError::class, static fn () => $mysql->listen('a'));
        self::thrown(UsageError::class, static fn () => $mysql->notify('a'));
    }

    public function testAServerThatIsDownIsAnErrorOfListen(): void
    {
        self::thrown(ConnectionRefusedException::class, static fn () => Database::connect('postgres://app:hunter2@127.0.0.1:1/app')->listen('a'));
        $wrong = (string) \preg_replace('~//weft:[^@]*@~', '//weft:hunter2@', self::postgres());
        $error = self::thrown(AuthenticationException::class, static fn () => Database::connect($wrong)->listen('a'));
        self::assertStringNotContainsString('hunter2', (string) $error);
    }

    private static function payload(Listener $listener): string
    {
        $notification = $listener->next();
        self::assertInstanceOf(Notification::class, $notification);

        return $notification->payload;
    }

    /** Sessions that listen on the channel. */
    private function listening(): int
    {
        return $this->db->execute("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND query LIKE ?", ["%{$this->suffix()}%"])->value();
    }

    /** @param \Closure(Database, Proxy): void $test run in a task */
    private function behindProxy(\Closure $test): void
    {
        $server = \parse_url(self::postgres());
        $proxy = new Proxy($server['host'], $server['port']);
        try {
            run(static fn () => $test(Database::connect("postgres://{$server['user']}:{$server['pass']}@127.0.0.1:{$proxy->port}{$server['path']}?sslmode=disable"), $proxy));
        } finally {
            $proxy->stop();
        }
    }

    /** The part of the channel's name that no quoting changes. */
    private function suffix(): string
    {
        return \explode('"', $this->channel)[1];
    }
}
