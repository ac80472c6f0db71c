<?php

declare(strict_types=1);

namespace Weft\Bus;

/** The database holds the outbox and the delayed messages of a bus on another broker. The message names both brokers; nothing was published. */
final class BrokerConflictException extends BusException {}
