<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

/** A class cannot be an aggregate. */
final class InvalidAggregate extends \Error implements \Weft\Exception {}
