<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A handler exceeded its {@see Timeout}. Names the handler, the message and what it was waiting for. */
final class HandlerTimeoutException extends BusException implements Recoverable , PublicFailure{}
