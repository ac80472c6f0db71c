<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A second handler for a command, or a class that is both command and event. */
final class DuplicateHandler extends \Error implements \Weft\Exception {}
