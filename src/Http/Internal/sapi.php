<?php

declare(strict_types=1);

/*
 * Functions that PHP has on a web server, and not on the command line, where Weft runs it. Applications in realms may call them.
 */

use Weft\Http\Internal\ServerParameters;

if (!\function_exists('getallheaders')) {
    /** @return array<string, string> the header fields of the request, as PHP-FPM names them: `X-Request-Id` */
    function getallheaders(): array
    {
        return ServerParameters::headers($_SERVER);
    }
}

if (!\function_exists('apache_request_headers')) {
    /** @return array<string, string> as `getallheaders()` */
    function apache_request_headers(): array
    {
        return ServerParameters::headers($_SERVER);
    }
}
