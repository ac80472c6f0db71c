<?php

declare(strict_types=1);

namespace Weft\Bus;

/** No reply arrived in time; a late reply is discarded. Whether a command was handled is unknown. */
final class RequestTimeoutException extends BusException {}
