<?php

declare(strict_types=1);

namespace Weft\CloudEvents;

/** Where the attributes of a CloudEvent are written. Both modes are read. */
enum ContentMode
{
    /** The attributes are headers, the body is the data alone. */
    case Binary;

    /** One JSON object contains attributes and data, so that an event can be stored and forwarded as it is. */
    case Structured;
}
