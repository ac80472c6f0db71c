<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Command;

use Psr\Cache\CacheItemPoolInterface;
use Psr\Log\LoggerInterface;
use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Exception\InvalidArgumentException;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;
use Symfony\Component\HttpKernel\KernelInterface;
use Symfony\Contracts\Service\ResetInterface;
use Weft\Bridge\Internal\Setting;
use Weft\Bridge\Symfony\Internal\BusFactory;
use Weft\Bridge\Symfony\Internal\RestartSignal;
use Weft\Bridge\Symfony\Internal\RuntimeOptions;
use Weft\Bridge\Symfony\Messenger\QueueType;
use Weft\Bridge\Symfony\Messenger\Transports;
use Weft\Bus\ConsumeOptions;
use Weft\Http\ApplicationPool;
use Weft\Bridge\Internal\SymfonyStatics;
use Weft\Http\Recycling;
use Weft\Log\StreamLogger;
use Weft\UsageError;

use function Weft\detach;
use function Weft\run;

/**
 * `bin/console weft:messenger:consume orders`: handles the messages that Messenger has sent to `weft://orders`, each in a kernel of its
 * own, so that handlers that wait do not hold up others and share no services, nor the static properties that the option `isolate` of the
 * runtime names.
 */
#[AsCommand(name: 'weft:messenger:consume', description: 'Handle messages of Messenger, many at once, each in a kernel of its own')]
final class ConsumeMessagesCommand extends Command
{
    /** @param CacheItemPoolInterface|null $restarts where `messenger:stop-workers` puts its signal; null: there is none */
    public function __construct(
        private readonly BusFactory $buses,
        private readonly KernelInterface $kernel,
        private readonly ?LoggerInterface $logger,
        private readonly Transports $transports,
        private readonly ?CacheItemPoolInterface $restarts = null,
    ) {
        parent::__construct();
    }

    protected function configure(): void
    {
        $this
            ->addArgument('queue', InputArgument::REQUIRED, 'The queue of weft://queue; it is declared if it is missing')
            ->addOption('concurrency', 'c', InputOption::VALUE_REQUIRED, 'Messages that are handled at the same time, and kernels', '16')
            ->addOption('kernel-messages', null, InputOption::VALUE_REQUIRED, 'A kernel is replaced after this many messages; 0: never', '0')
            ->addOption('limit', 'l', InputOption::VALUE_REQUIRED, 'Stop after this many messages')
            ->addOption('stop-when-empty', null, InputOption::VALUE_NONE, 'Stop when the queue is empty');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $queue = (string) $input->getArgument('queue');
        // A queue that no transport has could only be filled with dead letters.
        $this->transports->name($queue);
        $logger = $this->logger ?? StreamLogger::fromEnvironment();
        try {
            $concurrency = Setting::integer('--concurrency', $input->getOption('concurrency'), 1, ConsumeOptions::MAX_CONCURRENCY);
            $limit = $input->getOption('limit') === null ? null : Setting::integer('--limit', $input->getOption('limit'), 1);
            $recycling = new Recycling(Setting::integer('--kernel-messages', $input->getOption('kernel-messages'), 0));
            RuntimeOptions::ofProject($this->kernel->getProjectDir())->isolate();
        } catch (UsageError $refused) {
            // The console shows exceptions, and leaves errors to PHP.
            throw new InvalidArgumentException($refused->getMessage(), previous: $refused);
        }
        SymfonyStatics::isolate();
        $options = new ConsumeOptions(limit: $limit, stopWhenEmpty: (bool) $input->getOption('stop-when-empty'));
        $handled = run(function () use ($queue, $concurrency, $recycling, $logger, $options): int {
            $shutDown = static fn(KernelInterface $kernel) => $kernel->shutdown();
            $kernels = new ApplicationPool(fn(): KernelInterface => clone $this->kernel, $concurrency, 60.0, $recycling, self::reset(...), $shutDown, $logger, 'kernels');
            $handler = QueueType::handler($queue);
            $bus = $this->buses->create([new $handler($kernels, $queue)]);
            $bus->queue($queue)->declare();

            $signal = $this->restarts === null ? null : detach((new RestartSignal($this->restarts, $logger))->stopInTime(...), $bus);
            try {
                return $bus->consume($queue, $concurrency, $options);
            } finally {
                $signal?->cancel('the worker has ended');
            }
        });
        $output->writeln("$handled messages handled", OutputInterface::VERBOSITY_VERBOSE);

        return self::SUCCESS;
    }

    /** As Messenger's worker does between two messages. `Kernel::boot()` resets services only after a request. */
    private static function reset(KernelInterface $kernel): void
    {
        $container = $kernel->getContainer();
        $resetter = $container->has('services_resetter') ? $container->get('services_resetter') : null;
        $resetter instanceof ResetInterface && $resetter->reset();
    }
}
