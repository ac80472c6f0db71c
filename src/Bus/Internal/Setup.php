<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Psr\Container\ContainerInterface;
use Psr\Log\LoggerInterface;
use Weft\Bus\BusOptions;
use Weft\Bus\Context;
use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\Internal\Codec\MessageCompiler;
use Weft\Bus\Internal\Codec\MessageRules;
use Weft\Bus\Internal\Consuming\RetryPolicy;
use Weft\Bus\Internal\Flow\RateLimiter;
use Weft\Bus\Internal\Handlers\HandlerCompiler;
use Weft\Bus\Internal\Handlers\Handlers;
use Weft\Bus\Internal\Handlers\KeyedMutex;
use Weft\Bus\Internal\Handlers\Parameters;
use Weft\Bus\Internal\Handlers\Pipeline;
use Weft\Bus\Internal\Persistence\PausedQueues;
use Weft\Bus\Internal\Persistence\Persistence;
use Weft\Bus\Internal\Persistence\Tables as BusTables;
use Weft\Bus\Internal\Postgres\Tables as PostgresTables;
use Weft\Bus\Internal\Requests\Replies;
use Weft\Bus\Internal\Saga\ExpiredSagas;
use Weft\Bus\Internal\Saga\SagaCompiler;
use Weft\Bus\Internal\Saga\SagaStore;
use Weft\Bus\Internal\Saga\Tables as SagaTables;
use Weft\Bus\Internal\Schema\Upcasters;
use Weft\Bus\Internal\Sending\BodyStore;
use Weft\Bus\Internal\Sending\DelayStore;
use Weft\Bus\Internal\Sending\EnvelopeFactory;
use Weft\Bus\Internal\Serializing\DeliveryOpener;
use Weft\Bus\Internal\Sqlite\Tables as SqliteTables;
use Weft\Bus\BusStats;
use Weft\Bus\InvalidHandlerError;
use Weft\Bus\Serializer;
use Weft\Bus\Transport;
use Weft\Bus\Transport\DatabaseTransport;
use Weft\Bus\Transport\DelayingTransport;
use Weft\Log\Internal\GuardedLogger;
use Weft\Log\StreamLogger;
use Weft\Runtime\Local;
use Weft\Sql\Database;
use Weft\Sql\Internal\Schema\Component;

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

    public readonly ?ExpiredSagas $expired;

    public readonly ?DelayStore $delays;
    public readonly PausedQueues $paused;
    public readonly RetryPolicy $retries;
    public readonly RateLimiter $rates;

    private readonly ?ContainerInterface $container;

    public function __construct(
        public readonly Transport $transport,
        public readonly ?Database $database,
        public readonly BusOptions $options,
    ) {
        $logger = $options->logger ?? StreamLogger::fromEnvironment();
        $this->logger = GuardedLogger::around($logger);
        $this->container = $options->container;
        $this->codec = new Codec(MessageCompiler::ofBus($options->messages->keys), new MessageRules($options->messages->serializers, $options->messages->routes));
        $this->claims = new BodyStore($options->messages->claims, $database);
        $this->decoder = new Decoder(new Upcasters($this->codec), $this->codec, $this->claims);
        $this->envelopes = new EnvelopeFactory($this->codec, $this->claims);
        $this->handlers = new Handlers(new Pipeline($options->timeout, $options->middleware), $this->codec);
        $parameters = new Parameters($database, $options->container, $logger);
        $this->compiler = new HandlerCompiler($this->codec, $parameters, $options->validator);
        $this->sagas = new SagaCompiler($this->codec, $parameters, $options->validator, $database === null ? null : new SagaStore($database));
        $this->inTurn = new KeyedMutex();
        $this->replies = new Replies($this->envelopes, $transport, $this->logger);
        $this->stats = new BusStats();
        /** @var Local<Context|null> $current */
        $current = new Local(inDetached: false);
        $this->current = $current;
        $this->retries = new RetryPolicy($options->retry);
        $store = $database ?? ($transport instanceof DatabaseTransport ? $transport->database() : null);
        $this->persistence = $store === null ? null : new Persistence($store, $transport, $this->envelopes, $options->inbox, $this->logger);
        $this->expired = $this->persistence === null ? null : new ExpiredSagas($this->sagas, $this->persistence->delayed, $this->envelopes);
        $this->rates = new RateLimiter($store);
        $this->paused = new PausedQueues($store, $transport);
        $this->delays = $this->persistence?->delayed ?? ($transport instanceof DelayingTransport ? $transport->delays() : null);
        \array_map($this->codec->of(...), $options->messages->classes);
    }

    /** Registers handlers, upcasters or a saga, see {@see \Weft\Bus\Bus::handlers()}: the whole service, or nothing of it. */
    public function register(object|string $service): void
    {
        if (\is_string($service) && !SagaCompiler::isSaga($service) && $this->container?->has($service) === true) {
            /** @var object $service */
            $service = $this->container->get($service);
        }
        \is_string($service) ? $this->registerSaga($service) : $this->registerService($service);
    }

    /** @param class-string $class */
    private function registerSaga(string $class): void
    {
        [$definition, $handlers] = $this->sagas->compile($class);
        $this->handlers->register($handlers);
        $this->sagas->add($class, $definition);
        if ($this->expired !== null) {
            $this->persistence?->maintenance->expireBy($this->expired->end(...));
        }
    }

    private function registerService(object $service): void
    {
        if (SagaCompiler::isSaga($service::class)) {
            throw new InvalidHandlerError($service::class . ' is a saga: register it by its class, handlers(' . $service::class . '::class)');
        }
        $handlers = $this->compiler->compile($service);
        $upcasters = $this->decoder->upcasters->compile($service);
        if ($upcasters === [] && $handlers === []) {
            throw new InvalidHandlerError(\get_debug_type($service) . ' has no method marked with #[CommandHandler], #[EventListener], #[QueryHandler] or #[Upcaster]');
        }
        $this->handlers->register($handlers);
        $this->decoder->upcasters->add($upcasters);
    }

    /** The formats of a queue; null if it has none of its own. */
    public function opener(string $queue): ?DeliveryOpener
    {
        $formats = $this->options->messages->queueSerializers[$queue] ?? [];

        return $formats === [] ? null : new DeliveryOpener($formats instanceof Serializer ? [$formats] : $formats, $this->codec);
    }

    /** @return list<array{Database, Component}> the tables that the bus uses, and where */
    public function components(): array
    {
        $transport = match (true) {
            $this->transport instanceof Transport\Postgres => PostgresTables::component(),
            $this->transport instanceof Transport\Sqlite => SqliteTables::component(),
            default => null,
        };
        $claims = $this->claims->database();

        return [
            ...($this->persistence === null ? [] : [[$this->persistence->database, BusTables::component()]]),
            ...($this->sagas->store !== null && $this->sagas->hasSagas() ? [[$this->sagas->store->database, SagaTables::component()]] : []),
            ...($claims === null ? [] : [[$claims, ClaimCheckTables::component()]]),
            ...($transport !== null && $this->transport instanceof DatabaseTransport ? [[$this->transport->database(), $transport]] : []),
        ];
    }

    /** The context of the current handler, also in the tasks of its scope. */
    public function handling(): ?Context
    {
        $context = $this->current->value();

        return $context?->isOpen() === true ? $context : null;
    }
}
