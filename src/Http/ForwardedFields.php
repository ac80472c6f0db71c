<?php

declare(strict_types=1);

namespace Weft\Http;

/** The header fields in which trusted proxies describe their client. */
enum ForwardedFields: string
{
    /** `X-Forwarded-For`, `X-Forwarded-Proto`, `X-Forwarded-Host`, `X-Forwarded-Port`. */
    case XForwarded = 'x-forwarded';
    /** `Forwarded` (RFC 7239). */
    case Forwarded = 'forwarded';
    /** None: the proxies speak the PROXY protocol only. */
    case None = 'none';
}
