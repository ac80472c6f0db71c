<?php

declare(strict_types=1);

namespace Weft\Testing;

/** A run of a simulation threw something that is no failed assertion: the previous exception. The message has the seed. */
final class SimulationFailed extends \RuntimeException implements \Weft\Exception {}
