<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * The workers that handled the message ended repeatedly before they acknowledged it, see {@see InboxOptions::$maxCrashes}. The message is
 * dead-lettered so that it cannot crash further workers.
 */
final class CrashedTooOftenException extends BusException {}
