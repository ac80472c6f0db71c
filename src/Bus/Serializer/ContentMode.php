<?php

declare(strict_types=1);

namespace Weft\Bus\Serializer;

/** Where {@see CloudEvents} writes the attributes of an event. Both modes are read. */
enum ContentMode
{
    /** The attributes are headers, the body is the data alone. */
    case Binary;

    /** One JSON object contains attributes and data, so that an event can be stored and forwarded as it is. */
    case Structured;
}
