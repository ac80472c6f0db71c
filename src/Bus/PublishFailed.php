<?php

declare(strict_types=1);

namespace Weft\Bus;

/** The broker did not take responsibility for a message. */
final class PublishFailed extends BusException {}
