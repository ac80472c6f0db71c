<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A command arrived for which this process has no handler. */
final class NoHandler extends BusException implements PublicFailure {}
