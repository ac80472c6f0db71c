<?php

declare(strict_types=1);

namespace Weft\Http;

/** The cross-site requests with which a browser sends a cookie (RFC 6265bis §4.1.2.7). */
enum SameSite: string
{
    /** No cross-site request. */
    case Strict = 'Strict';
    /** Top-level navigation, such as following a link. */
    case Lax = 'Lax';
    /** All cross-site requests. The cookie must be `Secure`. */
    case None = 'None';
}
