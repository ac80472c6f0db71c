<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Messenger;

use Symfony\Component\HttpKernel\KernelInterface;
use Symfony\Component\Messenger\Exception\HandlerFailedException;
use Symfony\Component\Messenger\Exception\MessageDecodingFailedException;
use Symfony\Component\Messenger\Exception\UnrecoverableExceptionInterface;
use Weft\Bus\Context;
use Weft\Http\Internal\KernelPool;

/** Handles messages of Messenger, each in a kernel of its own. */
abstract class Handler
{
    /**
     * @internal made by the command
     *
     * @param KernelPool|null $kernels null: it only declares the queue
     */
    final public function __construct(private readonly ?KernelPool $kernels, private readonly string $transport)
    {
    }

    protected function process(Packed $packed, Context $context): void
    {
        $lent = $this->kernels?->borrow() ?? throw new \LogicException('This handler was made to declare its queue');
        try {
            \assert($lent->kernel instanceof KernelInterface);
            $lent->kernel->boot();
            /** @var Dispatcher $dispatcher */
            $dispatcher = $lent->kernel->getContainer()->get(Dispatcher::class);
            Transport::handled()->with($context, fn() => $dispatcher->dispatch($packed, $this->transport));
        } catch (\Throwable $thrown) {
            $lent->discard();
            throw self::isFinal($thrown) ? new UnrecoverableMessageException($thrown->getMessage(), previous: $thrown) : $thrown;
        }
        $lent->giveBack();
    }

    /** Whether no retry helps: a message that cannot be read, or handlers that all say so. */
    private static function isFinal(\Throwable $thrown): bool
    {
        if (!$thrown instanceof HandlerFailedException) {
            return $thrown instanceof UnrecoverableExceptionInterface || $thrown instanceof MessageDecodingFailedException;
        }
        // Symfony 6.4 has renamed it.
        $failures = \method_exists($thrown, 'getWrappedExceptions') ? $thrown->getWrappedExceptions() : $thrown->getNestedExceptions();
        $others = \array_filter($failures, static fn(\Throwable $failure): bool => !$failure instanceof UnrecoverableExceptionInterface);

        return $others === [];
    }
}
