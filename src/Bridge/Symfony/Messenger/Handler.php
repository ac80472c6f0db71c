<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Messenger;

use Symfony\Component\HttpKernel\KernelInterface;
use Symfony\Component\Messenger\Exception\HandlerFailedException;
use Symfony\Component\Messenger\Exception\MessageDecodingFailedException;
use Symfony\Component\Messenger\Exception\UnrecoverableExceptionInterface;
use Weft\Bus\Context;
use Weft\Http\ApplicationPool;

/** Handles messages of Messenger, each in a kernel of its own. */
abstract class Handler
{
    /**
     * @internal made by the command
     *
     * @param ApplicationPool<KernelInterface>|null $kernels null: it only declares the queue
     */
    final public function __construct(private readonly ?ApplicationPool $kernels, private readonly string $queue)
    {
    }

    protected function process(Packed $packed, Context $context): void
    {
        $kernels = $this->kernels ?? throw new \LogicException('This handler was made to declare its queue');
        try {
            $kernels->with(function (KernelInterface $kernel) use ($packed, $context): void {
                $kernel->boot();
                /** @var Dispatcher $dispatcher */
                $dispatcher = $kernel->getContainer()->get(Dispatcher::class);
                Transport::handled()->with($context, fn() => $dispatcher->dispatch($packed, $this->queue));
            });
        } catch (\Throwable $thrown) {
            throw self::isFinal($thrown) ? new UnrecoverableMessageException($thrown->getMessage(), previous: $thrown) : $thrown;
        }
    }

    /** Whether no retry helps: a message that cannot be read, or handlers that all say so. */
    private static function isFinal(\Throwable $thrown): bool
    {
        if (!$thrown instanceof HandlerFailedException) {
            return $thrown instanceof UnrecoverableExceptionInterface || $thrown instanceof MessageDecodingFailedException;
        }
        $others = \array_filter(Dispatcher::failures($thrown), static fn(\Throwable $failure): bool => !$failure instanceof UnrecoverableExceptionInterface);

        return $others === [];
    }
}
