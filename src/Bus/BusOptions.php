<?php

declare(strict_types=1);

namespace Weft\Bus;

use Psr\Container\ContainerInterface;
use Psr\Log\LoggerInterface;
use Weft\Internal\Number;
use Weft\Validation\Validate;
use Weft\Validation\Validator;

/** Options of {@see Bus::connect()}. */
final class BusOptions
{
    /**
     * @param DeliveryGuarantee       $guarantee what a crash may lose or repeat; see its cases. Change it to compare with other systems, or
     *                                           where handlers recognise duplicates themselves
     * @param Retry                   $retry     retries of handlers without a rule of their own, of all exceptions but mistakes in the
     *                                           program, see {@see Retry}. `new Retry()` dead-letters at once. Change it to the outages you
     *                                           expect
     * @param float|null              $timeout   seconds a handler without a {@see Timeout} may run, above 0; null for no limit. Set it where
     *                                           handlers call services that may hang
     * @param InboxOptions            $inbox     how long handled messages are remembered, and when the relay publishes what a crash left
     * @param MessageOptions          $messages  how message bodies are encrypted and stored
     * @param list<Middleware>        $middleware around every handler; the first is the outermost. Set it for what all handlers share, such as logs
     *                                            or tenants
     * @param ContainerInterface|null $container provides handlers that are registered by class name, and further parameters of handlers by
     *                                           type. Any PSR-11 container; none is needed. Set it where handlers have dependencies
     * @param LoggerInterface|null    $logger    receives failures and connection events; default: lines on stderr. Set it where logs go elsewhere
     * @param Observer|null           $observer  is called for each handled message, for metrics of your own. Set it where the metrics of the bus
     *                                           are not enough
     * @param Validator|null          $validator validates messages whose handlers have {@see Validate}; null uses symfony/validator. Set it where
     *                                           other rules than those of Symfony apply
     *
     * @throws \ValueError when the timeout is not above 0
     */
    public function __construct(
        public readonly DeliveryGuarantee $guarantee = DeliveryGuarantee::Transactional,
        public readonly Retry $retry = new Retry(immediate: 3, delayed: 5),
        public readonly ?float $timeout = null,
        public readonly InboxOptions $inbox = new InboxOptions(),
        public readonly MessageOptions $messages = new MessageOptions(),
        public readonly array $middleware = [],
        public readonly ?ContainerInterface $container = null,
        public readonly ?LoggerInterface $logger = null,
        public readonly ?Observer $observer = null,
        public readonly ?Validator $validator = null,
    ) {
        if ($timeout !== null && !($timeout > 0.0)) {
            throw new \ValueError('The timeout of a handler must be above 0 seconds, got ' . Number::text($timeout));
        }
    }
}
