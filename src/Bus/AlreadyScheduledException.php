<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A delayed message with this {@see SendOptions::$id} is waiting already; nothing was stored. */
final class AlreadyScheduledException extends BusException implements Unrecoverable {}
