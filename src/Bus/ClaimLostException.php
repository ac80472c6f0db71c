<?php

declare(strict_types=1);

namespace Weft\Bus;

/** The body of a message is not in the claim-check store, or does not match its hash. The message names its id. */
final class ClaimLostException extends BusException {}
