<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use PHPUnit\Framework\TestCase;

/** A forked child inherits native objects, signal handlers and sockets: it must not act on those of its parent. */
final class ForkTest extends TestCase
{
    protected function setUp(): void
    {
        if (!\function_exists('pcntl_fork')) {
            self::markTestSkipped('pcntl is not there');
        }
    }

    public function testAChildThatDestroysInheritedAmqpObjectsEndsAndLeavesTheConnectionToItsParent(): void
    {
        $url = getenv('AMQP_URL');
        if ($url === false) {
            self::fail('AMQP_URL is not set: `make services` starts a broker and writes it to var/services/env');
        }
        $program = Subprocess::run(\sprintf('$url = %s;', \var_export($url, true)) . <<<'PHP'
            use Weft\Amqp\{Connection, Message, Queue};
            $connection = Connection::connect($url);
            $queue = 'weft.fork.' . getmypid();
            $connection->declare(new Queue($queue, durable: false, autoDelete: true));
            $publisher = $connection->publisher();
            $consumer = $connection->consume($queue, prefetch: 5);
            $stuck = 0;
            $received = [];
            for ($round = 0; $round < 40; $round++) {
                // The I/O thread is busy, with its locks, while the process forks.
                $publisher->publishAll(array_fill(0, 20, new Message("$round")), '', $queue);
                $batch = $consumer->next(5);
                $child = pcntl_fork();
                if ($child === 0) {
                    try { $connection->status(); } catch (Weft\Runtime\ForkedProcessError) {}
                    unset($consumer, $publisher, $connection, $batch);
                    exit(0);
                }
                for ($waited = 0; pcntl_waitpid($child, $status, WNOHANG) === 0; $waited++) {
                    usleep(1000);
                    if ($waited > 60_000) {
                        $stuck++;
                        posix_kill($child, SIGKILL);
                        pcntl_waitpid($child, $status);
                        break;
                    }
                }
                while ($batch !== []) {
                    foreach ($batch as $delivery) {
                        $received[] = $delivery->body;
                        $consumer->ack($delivery);
                    }
                    $batch = count($received) < ($round + 1) * 20 ? $consumer->next(5) : [];
                }
            }
            echo "$stuck children stuck, ", count($received), " received, {$connection->status()->state->name}\n";
            $connection->close();
            PHP);

        self::assertSame("0 children stuck, 800 received, Connected\n", $program->output . $program->errors);
    }

    public function testAListenerOfPostgresOutlivesAChildThatEndsInsideTheLoop(): void
    {
        $dsn = getenv('DATABASE_URL');
        if ($dsn === false) {
            self::fail('DATABASE_URL is not set: `make services` starts PostgreSQL and writes it to var/services/env');
        }
        $program = Subprocess::run(\sprintf('$dsn = %s;', \var_export($dsn, true)) . <<<'PHP'
            $db = Weft\Sql\Database::connect($dsn);
            $listener = $db->listen('weft_fork');
            $db->execute("NOTIFY weft_fork, 'first'");
            foreach ($listener as $notification) {
                echo $notification->payload ?? $notification->reason, "\n";
                if ($notification->payload === 'last') {
                    break;
                }
                $child = pcntl_fork();
                if ($child === 0) {
                    exit(0);
                }
                pcntl_waitpid($child, $status);
                $db->execute("NOTIFY weft_fork, 'last'");
            }
            PHP);

        self::assertSame("first\nlast\n", $program->output . $program->errors);
    }

    public function testASignalToAChildDoesWhatItDidBeforeTheParentWaitedForIt(): void
    {
        $program = Subprocess::run(<<<'PHP'
            run(function () {
                $heard = false;
                $wait = async(function () use (&$heard) { signal(SIGUSR1); $heard = true; });
                delay(0.01);
                $child = pcntl_fork();
                if ($child === 0) {
                    posix_kill(posix_getpid(), SIGUSR1);
                    posix_kill(posix_getpid(), SIGKILL);
                }
                pcntl_waitpid($child, $status);
                echo pcntl_wtermsig($status) === SIGUSR1 ? "ended by its signal\n" : "not ended by its signal\n";
                delay(0.05);
                echo $heard ? "taken for the parent's\n" : "not heard by the parent\n";
                posix_kill(posix_getpid(), SIGUSR1);
                $wait->await();
                echo "the parent hears its own\n";
            });
            PHP);

        self::assertSame(
            "ended by its signal\nnot heard by the parent\nthe parent hears its own\n",
            $program->output . $program->errors,
        );
    }

    public function testAChildCanMakeAndDestroyNativeObjectsOfItsOwn(): void
    {
        $program = Subprocess::run(<<<'PHP'
            delay(0.001);
            $histogram = new Weft\Native\Histogram('weft_fork_seconds', 'Help.', []);
            $child = pcntl_fork();
            if ($child === 0) {
                unset($histogram);
                $new = new Weft\Native\Histogram('weft_fork_seconds', 'Help.', []);
                unset($new);
                exit(0);
            }
            pcntl_waitpid($child, $status);
            $histogram->record(0.1);
            echo pcntl_wifexited($status) ? 'exit ' . pcntl_wexitstatus($status) : 'signal', "\n";
            PHP);

        self::assertSame("exit 0\n", $program->output . $program->errors);
    }

    public function testATaskThatCannotRunInAChildIsRefused(): void
    {
        $program = Subprocess::run(<<<'PHP'
            run(fn() => delay(0.001));
            $child = pcntl_fork();
            if ($child === 0) {
                foreach ([fn() => run(fn() => print('never')), fn() => Weft\detach(fn() => print('never'))] as $call) {
                    try { $call(); echo "not refused\n"; } catch (Throwable $refused) { echo get_class($refused), "\n"; }
                }
                exit(0);
            }
            pcntl_waitpid($child, $status);
            PHP);

        self::assertSame("Weft\Runtime\ForkedProcessError\nError\n", $program->output . $program->errors);
    }
}
