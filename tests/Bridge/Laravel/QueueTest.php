<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use Illuminate\Container\Container;
use Illuminate\Contracts\Debug\ExceptionHandler;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bridge\Laravel\Internal\Buses;
use Weft\Bridge\Laravel\Queue\QueuedJob;
use Weft\Bridge\Laravel\Queue\QueueType;
use Weft\Bridge\Laravel\Queue\Source;
use Weft\Bridge\Laravel\Queue\WeftJob;
use Weft\Bridge\Laravel\Queue\WeftQueue;
use Weft\Bus\Header;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Outgoing;
use Weft\Tests\Extension;
use Weft\Tests\Sql\Support\EmptyDatabase;
use Weft\Tests\Timing;

use function Weft\run;

require_once __DIR__ . '/autoload.php';

/** Laravel's own worker, which takes one job after the other and has no event loop, on each kind of bus. */
final class QueueTest extends TestCase
{
    use RequiresLaravel;

    private string $prefix;

    private ?EmptyDatabase $database = null;

    /** @var list<WeftQueue> */
    private array $queues = [];

    /** @var array<string, true> those declared at the broker */
    private array $names = [];

    /** @var list<\Throwable> */
    private array $reported = [];

    protected function setUp(): void
    {
        $this->prefix = 'weft-laravel-' . \bin2hex(\random_bytes(6));
    }

    protected function tearDown(): void
    {
        $transports = \array_map(static fn(WeftQueue $queue): Transport => $queue->buses()->transport(), $this->queues);
        foreach (\array_keys($this->names) as $name) {
            $transports[0]->delete($name);
        }
        foreach ($transports as $transport) {
            $transport->close();
        }
        $this->database?->drop();
    }

    /** @return iterable<string, array{string}> */
    public static function buses(): iterable
    {
        yield 'RabbitMQ' => ['rabbitmq'];
        yield 'PostgreSQL' => ['postgres'];
        yield 'SQLite' => ['sqlite'];
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testJobsComeOneAfterTheOtherUntilThereAreNone(string $kind): void
    {
        $queue = $this->queue($kind);
        self::assertNull($queue->pop($this->queueName('a')), 'empty');
        foreach (['1', '2', '3'] as $job) {
            $queue->pushRaw($job, $this->queueName('a'));
        }

        $done = [];
        while (($job = $queue->pop($this->queueName('a'))) instanceof WeftJob) {
            $done[] = $job->getRawBody();
            $job->delete();
        }

        self::assertSame(['1', '2', '3'], $done);
        self::assertSame(0, $queue->size($this->queueName('a')));
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testAJobThatArrivesAfterAnEmptyPopIsTakenByTheNext(string $kind): void
    {
        $queue = $this->queue($kind);
        for ($round = 0; $round < 3; $round++) {
            self::assertNull($queue->pop($this->queueName('a')));
            $queue->pushRaw("$round", $this->queueName('a'));
            $job = $queue->pop($this->queueName('a'));
            self::assertSame("$round", $job?->getRawBody());
            $job->delete();
        }
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testAWorkerOfSeveralQueuesHoldsNoJobThatItDoesNotHandle(string $kind): void
    {
        $queue = $this->queue($kind);
        self::assertNull($queue->pop($this->queueName('high')));
        $queue->pushRaw('low', $this->queueName('low'));
        $low = $queue->pop($this->queueName('low'));
        $queue->pushRaw('high', $this->queueName('high'));
        $queue->pushRaw('low, too', $this->queueName('low'));

        self::assertSame('low', $low?->getRawBody());
        $other = $this->another($kind);
        $taken = [$other->pop($this->queueName('high')), $other->pop($this->queueName('low'))];
        self::assertSame(['high', 'low, too'], [$taken[0]?->getRawBody(), $taken[1]?->getRawBody()]);
        $taken[0]->delete();
        $taken[1]->delete();
        $low->delete();
        self::assertNull($queue->pop($this->queueName('low')));
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testAReleasedJobComesAgainWithOneMoreAttempt(string $kind): void
    {
        $queue = $this->queue($kind);
        $queue->pushRaw('{"job":"a"}', $this->queueName('a'));
        $queue->pop($this->queueName('a'))?->release();

        $again = $queue->pop($this->queueName('a'));

        self::assertSame(['{"job":"a"}', 2], [$again?->getRawBody(), $again?->attempts()]);
        $again->delete();
        self::assertNull($queue->pop($this->queueName('a')));
    }

    public function testAJobThatCannotBeStoredAmongTheFailedJobsIsNotAcknowledged(): void
    {
        $source = $this->createMock(Source::class);
        $source->expects(self::never())->method('acknowledge');
        $job = new WeftJob(new Container(), 'weft', 'a', new class ('{"job":"a"}', 0) extends QueuedJob {}, $source);
        $job->delete();
        $job->notStored(new \RuntimeException('no such table: failed_jobs'));

        $this->expectExceptionMessage('no such table: failed_jobs');
        $job->finish();
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testAJobThatNobodySettlesComesAgain(string $kind): void
    {
        $queue = $this->queue($kind);
        $queue->pushRaw('1', $this->queueName('a'));
        self::assertSame('1', $queue->pop($this->queueName('a'))?->getRawBody());

        $again = $queue->pop($this->queueName('a'));

        self::assertSame('1', $again?->getRawBody());
        self::assertSame(2, $again->attempts(), 'an attempt that was begun counts');
        $again->delete();
        self::assertNull($queue->pop($this->queueName('a')));
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testTheJobOfAWorkerThatWasKilledComesAgain(string $kind): void
    {
        $queue = $this->queue($kind);
        $queue->pushRaw('1', $this->queueName('a'));
        $program = 'require $argv[1]; require $argv[2];
            $queue = new Weft\Bridge\Laravel\Queue\WeftQueue(new Weft\Bridge\Laravel\Internal\Buses($argv[3]), $argv[4], false);
            $queue->setContainer(new Illuminate\Container\Container());
            $queue->setConnectionName("weft");
            $job = $queue->pop();
            echo $job->getRawBody(), "\n";
            sleep(600);';
        $root = \dirname(__DIR__, 3);
        $command = [\PHP_BINARY, '-d', 'extension=' . Extension::library(), '-r', $program, '--', "$root/autoload.php", __DIR__ . '/autoload.php', $this->dsn($kind), $this->queueName('a')];
        $worker = \proc_open($command, [1 => ['pipe', 'w']], $pipes);
        \assert(\is_resource($worker));
        try {
            self::assertSame("1\n", \fgets($pipes[1]));
            self::assertNull($queue->pop($this->queueName('a')), 'the other worker has it');
        } finally {
            \proc_terminate($worker, \SIGKILL);
            \proc_close($worker);
        }

        $again = null;
        Timing::until(function () use ($queue, &$again): bool {
            return ($again = $queue->pop($this->queueName('a'))) !== null;
        }, 'the job comes again');

        self::assertSame('1', $again?->getRawBody());
        self::assertSame(2, $again->attempts(), 'an attempt that was begun counts');
        $again->delete();
        self::assertNull($queue->pop($this->queueName('a')));
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testASignalHandlerSettlesAJobAsLaravelsTimeLimitDoes(string $kind): void
    {
        $queue = $this->queue($kind);
        $queue->pushRaw('1', $this->queueName('a'));
        $job = $queue->pop($this->queueName('a'));
        $before = [\pcntl_async_signals(true), \pcntl_signal_get_handler(\SIGALRM)];
        \pcntl_signal(\SIGALRM, static fn() => $job?->delete());
        try {
            \posix_kill((int) \getmypid(), \SIGALRM);
            self::assertTrue($job?->isDeleted());
        } finally {
            \pcntl_async_signals($before[0]);
            \pcntl_signal(\SIGALRM, $before[1]);
        }

        self::assertNull($queue->pop($this->queueName('a')));
    }

    /** @dataProvider buses */
    #[DataProvider('buses')]
    public function testATaskTakesJobsToo(string $kind): void
    {
        $queue = $this->queue($kind);
        $queue->pushRaw('1', $this->queueName('a'));

        $body = run(function () use ($queue): ?string {
            $job = $queue->pop($this->queueName('a'));
            $job?->delete();

            return $job?->getRawBody();
        });

        self::assertSame('1', $body);
        self::assertNull($queue->pop($this->queueName('a')));
    }

    /** @return iterable<string, array{string, string}> */
    public static function damaged(): iterable
    {
        foreach (self::buses() as $name => [$kind]) {
            yield "$name, not JSON" => [$kind, 'no JSON'];
            yield "$name, not an object" => [$kind, '[]'];
            yield "$name, a payload that is not text" => [$kind, '{"payload":{},"attempts":0}'];
            yield "$name, attempts that are not a number" => [$kind, '{"payload":"{}","attempts":"x"}'];
        }
    }

    /** @dataProvider damaged */
    #[DataProvider('damaged')]
    public function testAMessageThatCannotBeDecodedIsReportedAndDeadLetteredAndTheNextJobComes(string $kind, string $body): void
    {
        $queue = $this->queue($kind);
        $name = $this->queueName('a');
        self::assertNull($queue->pop($name));
        $type = "laravel.job.$name";
        $transport = $queue->buses()->transport();
        $transport->publish([new Outgoing($type, $body, [Header::MESSAGE_ID => 'damaged'], mustRoute: true)]);
        $queue->pushRaw('good', $name);

        $job = $queue->pop($name);

        self::assertSame('good', $job?->getRawBody());
        $job->delete();
        self::assertNull($queue->pop($name));
        self::assertCount(1, $this->reported);
        self::assertStringContainsString('Cannot decode ' . QueueType::message($name), $this->reported[0]->getMessage());
        [$letter] = $queue->buses()->bus()->queue($name)->deadLetters()->peek();
        self::assertSame([$body, 'damaged', $name], [$letter->body, $letter->headers[Header::MESSAGE_ID], $letter->headers[Header::FAILED_QUEUE]]);
    }

    private function queue(string $kind): WeftQueue
    {
        return $this->open($this->dsn($kind));
    }

    /** As another process has it: with connections of its own. */
    private function another(string $kind): WeftQueue
    {
        return $this->open($this->dsn($kind) . match ($kind) {
            'rabbitmq' => '-other',
            'postgres' => '&application_name=other',
            'sqlite' => '?busy_timeout=60',
        });
    }

    private function open(string $dsn): WeftQueue
    {
        $container = new Container();
        $handler = $this->createMock(ExceptionHandler::class);
        $handler->method('report')->willReturnCallback(function (\Throwable $thrown): void {
            $this->reported[] = $thrown;
        });
        $container->instance(ExceptionHandler::class, $handler);
        $queue = new WeftQueue(new Buses($dsn), $this->queueName('default'), false);
        $queue->setContainer($container);
        $queue->setConnectionName('weft');

        return $this->queues[] = $queue;
    }

    private function dsn(string $kind): string
    {
        if ($kind === 'rabbitmq') {
            return (\getenv('AMQP_URL') ?: throw new \RuntimeException('AMQP_URL is not set: run `make services`')) . "?name={$this->prefix}";
        }

        return ($this->database ??= new EmptyDatabase($kind))->dsn();
    }

    private function queueName(string $queue): string
    {
        $name = "{$this->prefix}.$queue";
        $this->names[$name] = true;

        return $name;
    }
}
