<?php

declare(strict_types=1);

namespace Weft\Bus;

/** The queue is not declared. */
final class UndefinedQueueException extends BusException {}
