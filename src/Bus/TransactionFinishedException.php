<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A handler wanted to commit or roll back the Transaction that the bus had passed to it, or a statement of the handler has committed it. */
final class TransactionFinishedException extends BusException {}
