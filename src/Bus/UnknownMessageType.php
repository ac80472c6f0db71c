<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A message arrived whose type no handler and no known message class has. */
final class UnknownMessageType extends BusException implements PublicFailure {}
