<?php

declare(strict_types=1);

namespace Weft\Http;

/** With which requests from other sites a browser sends a cookie (RFC 6265bis §4.1.2.7). */
enum SameSite: string
{
    /** With none. */
    case Strict = 'Strict';
    /** When a link or a GET form leads from the other site to this one. */
    case Lax = 'Lax';
    /** With all, also those of scripts, frames and forms of the other site. The cookie must be `Secure`. */
    case None = 'None';
}
