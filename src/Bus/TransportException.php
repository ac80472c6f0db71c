<?php

declare(strict_types=1);

namespace Weft\Bus;

/** The broker cannot be reached, refused the connection, or closed it. */
final class TransportException extends BusException {}
