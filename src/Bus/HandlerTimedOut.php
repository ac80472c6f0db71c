<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A handler took longer than its {@see Timeout}; names handler, message and what it was waiting for. */
final class HandlerTimedOut extends BusException implements Recoverable , PublicFailure{}
