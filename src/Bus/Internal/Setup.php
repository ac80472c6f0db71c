<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Psr\Container\ContainerInterface;
use Psr\Log\LoggerInterface;
use Weft\Bus\ClaimCheck;
use Weft\Bus\Context;
use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\Internal\Consuming\RetryPolicy;
use Weft\Bus\Internal\Flow\RateLimiter;
use Weft\Bus\Internal\Handlers\HandlerCompiler;
use Weft\Bus\Internal\Handlers\Handlers;
use Weft\Bus\Internal\Handlers\KeyedMutex;
use Weft\Bus\Internal\Handlers\Parameters;
use Weft\Bus\Internal\Handlers\Pipeline;
use Weft\Bus\Internal\Persistence\Persistence;
use Weft\Bus\Internal\Requests\Replies;
use Weft\Bus\Internal\Saga\SagaCompiler;
use Weft\Bus\Internal\Saga\SagaStore;
use Weft\Bus\Internal\Schema\Upcasters;
use Weft\Bus\Internal\Sending\BodyStore;
use Weft\Bus\Internal\Sending\DelayStore;
use Weft\Bus\Internal\Sending\EnvelopeFactory;
use Weft\Bus\KeyRing;
use Weft\Bus\Observer;
use Weft\Bus\BusStats;
use Weft\Bus\DeliveryGuarantee;
use Weft\Bus\InboxOptions;
use Weft\Bus\Retry;
use Weft\Bus\Timeout;
use Weft\Bus\Transport;
use Weft\Bus\Transport\DatabaseTransport;
use Weft\Bus\Transport\DelayingTransport;
use Weft\Bus\Validator;
use Weft\Runtime\Local;
use Weft\Sql\Database;

/**
 * The options of a bus, and the parts that its components share.
 *
 * @internal
 */
final class Setup
{
    public readonly LoggerInterface $logger;
    public readonly Codec $codec;
    public readonly BodyStore $claims;
    public readonly Decoder $decoder;
    public readonly EnvelopeFactory $envelopes;
    public readonly Handlers $handlers;
    public readonly Replies $replies;
    public readonly HandlerCompiler $compiler;
    public readonly SagaCompiler $sagas;

    /** For handlers whose messages run one at a time. */
    public readonly KeyedMutex $inTurn;

    public readonly BusStats $stats;

    /** @var Local<Context|null> of the handler that runs in the current task */
    public readonly Local $current;

    /** Null without a database. */
    public readonly ?Persistence $persistence;

    public readonly ?DelayStore $delays;
    public readonly RetryPolicy $retries;
    public readonly RateLimiter $rates;

    /** @param float|null $timeout seconds, of handlers that say nothing else */
    public function __construct(
        public readonly Transport $transport,
        public readonly ?Database $database,
        public readonly DeliveryGuarantee $guarantee,
        ?ContainerInterface $container,
        LoggerInterface $logger,
        public readonly ?Observer $observer,
        Retry $retry,
        InboxOptions $inbox,
        public readonly ?float $timeout,
        ?Validator $validator,
        ?ClaimCheck $claims,
        ?KeyRing $keys,
    ) {
        $this->logger = new GuardedLogger($logger);
        $this->codec = new Codec($keys);
        $this->claims = new BodyStore($claims);
        $this->decoder = new Decoder(new Upcasters($this->codec), $this->claims);
        $this->envelopes = new EnvelopeFactory($this->codec, $this->claims);
        $this->handlers = new Handlers(new Pipeline($timeout === null ? null : (new Timeout($timeout))->seconds));
        $parameters = new Parameters($database, $container, $logger);
        $this->compiler = new HandlerCompiler($this->codec, $parameters, $validator);
        $this->sagas = new SagaCompiler($this->codec, $parameters, $validator, $database === null ? null : new SagaStore($database));
        $this->inTurn = new KeyedMutex();
        $this->replies = new Replies($this->envelopes, $transport, $this->logger);
        $this->stats = new BusStats();
        /** @var Local<Context|null> $current */
        $current = new Local();
        $this->current = $current;
        $this->retries = new RetryPolicy($retry);
        $store = $database ?? ($transport instanceof DatabaseTransport ? $transport->database() : null);
        $this->persistence = $store === null ? null : new Persistence($store, $transport, $this->envelopes, $inbox, $this->logger);
        $this->rates = new RateLimiter($store);
        $this->delays = $this->persistence?->delayed ?? ($transport instanceof DelayingTransport ? $transport->delays() : null);
    }

    /** The context of the current handler, also in tasks that it has started. */
    public function handling(): ?Context
    {
        $context = $this->current->value();

        return $context?->isOpen() === true ? $context : null;
    }
}
