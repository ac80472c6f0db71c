<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A handler ended the Transaction it was given, which is the bus's to end. */
final class TransactionFinished extends BusException {}
