<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use PHPUnit\Framework\TestCase;
use Symfony\Bundle\FrameworkBundle\Console\Application;
use Symfony\Component\Console\Input\ArrayInput;
use Symfony\Component\Console\Output\BufferedOutput;
use Symfony\Component\Messenger\MessageBusInterface;
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
        [JobHandler::$handled, JobHandler::$waiting, JobHandler::$instances] = [[], 0, []];
        // PHP keeps the container of the first test, so the path is not a part of it.
        $_ENV['MESSENGER_TEST_BUS'] = "sqlite:$this->directory/bus.db";
        $this->kernel = new MessengerKernel($this->directory);
        $this->kernel->boot();
    }

    protected function tearDown(): void
    {
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

    public function testAFailedHandlerSendsNothingAndItsMessageBecomesADeadLetterAfterItsRetries(): void
    {
        $this->messages()->dispatch(new Job('send and give up'));
        $this->messages()->dispatch(new Job('note', 1));
        $this->consume('--stop-when-empty');

        self::assertSame(['note 1'], JobHandler::$handled);
        $bus = $this->kernel->getContainer()->get(Bus::class);
        self::assertInstanceOf(Bus::class, $bus);
        $dead = $bus->queue('jobs')->deadLetters()->peek();
        self::assertSame(['no retry helps'], \array_map(static fn(DeadLetter $letter): string => $letter->errorMessage(), $dead));
    }

    private function messages(): MessageBusInterface
    {
        $bus = $this->kernel->getContainer()->get('test.bus');
        self::assertInstanceOf(MessageBusInterface::class, $bus);

        return $bus;
    }

    private function consume(string ...$options): void
    {
        $input = ['command' => 'weft:messenger:consume', 'queue' => 'jobs'];
        foreach ($options as $option) {
            [$name, $value] = \explode('=', $option, 2) + [1 => true];
            $input[(string) $name] = $value;
        }
        $application = new Application($this->kernel);
        $application->setAutoExit(false);
        $output = new BufferedOutput();

        self::assertSame(0, $application->run(new ArrayInput($input), $output), $output->fetch());
    }
}
