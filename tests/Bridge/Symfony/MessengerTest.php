<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Psr\Cache\CacheItemPoolInterface;
use Symfony\Bundle\FrameworkBundle\Console\Application;
use Symfony\Component\Console\Input\ArrayInput;
use Symfony\Component\Console\Output\BufferedOutput;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Weft\Bus\Bus;
use Weft\Bus\DeadLetter;

require_once __DIR__ . '/autoload.php';

final class MessengerTest extends TestCase
{
    private string $directory;

    private MessengerKernel $kernel;

    protected function setUp(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-messenger-' . \bin2hex(\random_bytes(6));
        \mkdir($this->directory);
        JobHandler::$handled = JobHandler::$instances = JobHandler::$trusted = JobHandler::$found = JobHandler::$seen = WorkerEvents::$seen = LetterHandler::$handled = [];
        JobHandler::$waiting = 0;
        // PHP keeps the container of the first test, so the path is not a part of it.
        $_ENV['MESSENGER_TEST_BUS'] = "sqlite:$this->directory/bus.db";
        $_ENV['MESSENGER_TEST_LETTERS'] = 'weft://post';
        $this->kernel = new MessengerKernel($this->directory);
        $this->kernel->boot();
    }

    protected function tearDown(): void
    {
        unset($_SERVER['WEFT_ISOLATE'], $_SERVER['APP_RUNTIME_OPTIONS']);
        $files = new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($this->directory, \FilesystemIterator::SKIP_DOTS), \RecursiveIteratorIterator::CHILD_FIRST);
        foreach ($files as $file) {
            $file->isDir() ? \rmdir($file->getPathname()) : \unlink($file->getPathname());
        }
        \rmdir($this->directory);
    }

    public function testMessagesThatWaitAreHandledAtTheSameTimeEachInAKernelOfItsOwn(): void
    {
        foreach (\range(1, 6) as $_) {
            $this->messages()->dispatch(new Job('together', 6));
        }

        // One after the other they would wait for ever.
        $this->consume('--concurrency=6', '--limit=6');

        self::assertSame(\array_fill(0, 6, 'together 6'), JobHandler::$handled);
        self::assertCount(6, JobHandler::$instances);
    }

    public function testMessagesOfAHandlerAreSentIfItSucceeds(): void
    {
        $this->messages()->dispatch(new Job('send', 7));
        $this->consume('--stop-when-empty');

        self::assertSame(['send 7', 'note 7'], JobHandler::$handled);
    }

    public function testAMessageThatIsDelayedUntilATimeInThePastIsSentNow(): void
    {
        $this->messages()->dispatch(new Job('note', 1), [DelayStamp::delayUntil(new \DateTimeImmutable('-1 hour'))]);
        $this->consume('--stop-when-empty');

        self::assertSame(['note 1'], JobHandler::$handled);
    }

    public function testAFailedHandlerSendsNothingAndItsMessageBecomesADeadLetterAfterItsRetries(): void
    {
        $this->messages()->dispatch(new Job('send and give up'));
        $this->messages()->dispatch(new Job('note', 1));
        $this->consume('--stop-when-empty');

        self::assertSame(['note 1'], JobHandler::$handled);
        self::assertSame(['no retry helps'], $this->deadLetters('jobs'));
    }

    public function testTheEventsOfMessengersWorkerComeInTheKernelOfTheMessage(): void
    {
        $this->messages()->dispatch(new Job('note', 1));
        $this->messages()->dispatch(new Job('skip', 2));
        $this->messages()->dispatch(new Job('send and give up'));
        $this->consume('--concurrency=1', '--stop-when-empty');

        self::assertSame(
            ['received from jobs', 'handled from jobs', 'received from jobs', 'received from jobs', 'failed from jobs: no retry helps'],
            WorkerEvents::$seen,
        );
        self::assertSame(['note 1'], JobHandler::$handled);
    }

    public function testAMessageThatHasFailedIsRetriedByTheBusAlone(): void
    {
        $this->messages()->dispatch(new Job('fail'));
        $this->consume('--limit=1');

        self::assertSame(['received from jobs', 'failed from jobs: on purpose'], \array_values(\array_unique(WorkerEvents::$seen)));
    }

    public function testTheWorkerEndsAfterMessengersSignalToRestart(): void
    {
        $restarts = $this->kernel->getContainer()->get('test.restarts');
        self::assertInstanceOf(CacheItemPoolInterface::class, $restarts);
        $restarts->save($restarts->getItem('workers.restart_requested_timestamp')->set(\microtime(true) + 3_600.0));

        $this->consume();

        self::assertSame([], JobHandler::$handled);
    }

    public function testServicesAreResetBetweenTheMessagesOfAKernel(): void
    {
        foreach ([1, 2, 3] as $number) {
            $this->messages()->dispatch(new Job('note', $number));
        }

        $this->consume('--concurrency=1', '--limit=3');

        self::assertSame(['note 1', 'note 2', 'note 3'], JobHandler::$handled);
        self::assertCount(1, JobHandler::$instances);
        self::assertSame([[], [], []], JobHandler::$found);
    }

    public function testStaticPropertiesOfSymfonyAreThoseOfAKernel(): void
    {
        foreach ([1, 2] as $number) {
            $this->messages()->dispatch(new Job('trust', $number));
        }

        $this->consume('--concurrency=2', '--limit=2');

        \ksort(JobHandler::$trusted);
        self::assertSame([1 => '192.0.2.1', 2 => '192.0.2.2'], JobHandler::$trusted);
    }

    public function testStaticPropertiesThatTheEnvironmentNamesAreThoseOfAKernel(): void
    {
        $_SERVER['WEFT_ISOLATE'] = JobHandler::class . '::$tenant';

        self::assertSame(['tenant 1', 'tenant 2'], \array_column($this->become(), 0));
    }

    public function testStaticPropertiesThatComposerJsonNamesAreThoseOfAKernel(): void
    {
        \file_put_contents("$this->directory/composer.json", \json_encode(['extra' => ['runtime' => ['isolate' => [JobHandler::class . '::$locale']]]]));

        self::assertSame(['locale 1', 'locale 2'], \array_column($this->become(), 1));
    }

    public function testAPropertyToIsolateThatDoesNotExistIsRefusedWithTheOptionThatNamesIt(): void
    {
        $_SERVER['APP_RUNTIME_OPTIONS'] = ['isolate' => JobHandler::class . '::$missing'];

        [$code, $output] = $this->command('jobs', '--stop-when-empty');

        self::assertSame(1, $code);
        self::assertStringContainsString(self::withoutSpaces('"isolate" in extra.runtime of composer.json: '), self::withoutSpaces($output));
        self::assertStringContainsString('missing', $output);
    }

    public function testAMessageIsHandledOnceAlthoughTheResetAfterItFails(): void
    {
        foreach (['fail to reset', 'note'] as $what) {
            $this->messages()->dispatch(new Job($what, 1));
        }

        $this->consume('--concurrency=1', '--stop-when-empty');

        self::assertSame(['fail to reset 1', 'note 1'], JobHandler::$handled);
        self::assertSame([[], []], JobHandler::$found);
        self::assertSame([], $this->deadLetters('jobs'));
    }

    public function testATransportHasItsOwnSerializerAndItsNameMayDifferFromItsQueue(): void
    {
        $this->messages()->dispatch(new Letter('hello'));

        $this->consumeFrom('post', '--stop-when-empty');

        self::assertSame([], $this->deadLetters('post'));
        self::assertSame(['hello'], LetterHandler::$handled);
    }

    public function testAQueueThatNoTransportHasIsRefusedWithThoseThatOneHas(): void
    {
        [$code, $output] = $this->command('letters', '--stop-when-empty');

        self::assertSame(1, $code);
        self::assertStringContainsString(self::withoutSpaces('No transport of framework.messenger has the queue "letters". Queues of transports: jobs, post'), self::withoutSpaces($output));
    }

    /** @dataProvider badOptions */
    #[DataProvider('badOptions')]
    public function testANumberThatIsNoneIsRefusedWithItsOption(string $option, string $complaint): void
    {
        [$code, $output] = $this->command('jobs', '--stop-when-empty', $option);

        self::assertSame(1, $code);
        self::assertStringContainsString(self::withoutSpaces($complaint), self::withoutSpaces($output));
    }

    /** @return iterable<string, array{string, string}> */
    public static function badOptions(): iterable
    {
        yield 'concurrency' => ['--concurrency=many', '--concurrency is "many": it must be an integer of at least 1 and at most 1000000'];
        yield 'limit' => ['--limit=0', '--limit is "0": it must be an integer of at least 1'];
        yield 'messages of a kernel' => ['--kernel-messages=-1', '--kernel-messages is "-1": it must be an integer of at least 0'];
    }

    /** @return array<int, array{string, string}> the tenant and the locale that each of two messages sees */
    private function become(): array
    {
        foreach ([1, 2] as $number) {
            $this->messages()->dispatch(new Job('become', $number));
        }
        $this->consume('--concurrency=2', '--limit=2');
        \ksort(JobHandler::$seen);

        return JobHandler::$seen;
    }

    private function messages(): MessageBusInterface
    {
        $bus = $this->kernel->getContainer()->get('test.bus');
        self::assertInstanceOf(MessageBusInterface::class, $bus);

        return $bus;
    }

    /** @return list<string> why they are there */
    private function deadLetters(string $queue): array
    {
        $bus = $this->kernel->getContainer()->get(Bus::class);
        self::assertInstanceOf(Bus::class, $bus);

        return \array_map(static fn(DeadLetter $letter): string => $letter->errorMessage(), [...$bus->queue($queue)->deadLetters()->peek()]);
    }

    private function consume(string ...$options): void
    {
        $this->consumeFrom('jobs', ...$options);
    }

    private function consumeFrom(string $queue, string ...$options): void
    {
        [$code, $output] = $this->command($queue, ...$options);

        self::assertSame(0, $code, $output);
    }

    /** @return array{int, string} exit code and output */
    private function command(string $queue, string ...$options): array
    {
        $input = ['command' => 'weft:messenger:consume', 'queue' => $queue];
        foreach ($options as $option) {
            [$name, $value] = \explode('=', $option, 2) + [1 => true];
            $input[(string) $name] = $value;
        }
        $application = new Application($this->kernel);
        $application->setAutoExit(false);
        $output = new BufferedOutput();
        $code = $application->run(new ArrayInput($input), $output);

        return [$code, $output->fetch()];
    }

    /** The console breaks lines, within words too. */
    private static function withoutSpaces(string $text): string
    {
        return (string) \preg_replace('/\s+/', '', $text);
    }
}
