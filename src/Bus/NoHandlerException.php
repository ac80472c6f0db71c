<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A command arrived that has no handler in this process. */
final class NoHandlerException extends BusException implements PublicFailure {}
