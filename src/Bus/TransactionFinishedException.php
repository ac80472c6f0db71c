<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A handler committed or rolled back the Transaction that the bus had passed to it. */
final class TransactionFinishedException extends BusException {}
