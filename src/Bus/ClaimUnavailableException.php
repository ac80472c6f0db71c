<?php

declare(strict_types=1);

namespace Weft\Bus;

/** The claim-check store cannot be read at present. It is not known whether it has the body, so the message is retried. */
final class ClaimUnavailableException extends BusException implements Recoverable {}
