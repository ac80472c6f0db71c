<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Native\HttpFile;

/**
 * A file that the extension reads and sends.
 *
 * @internal
 */
final class FileBody implements Body
{
    public function __construct(public readonly HttpFile $file)
    {
    }

    public function send(Request $request, Response $response): void
    {
        $request->respondFile($response->status, $response->headers, $this->file);
    }
}
