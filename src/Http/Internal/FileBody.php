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
    /** @param string|null $temporary path of the same file, which is deleted when the extension has it to send */
    public function __construct(public readonly HttpFile $file, private readonly ?string $temporary = null)
    {
    }

    public function send(Request $request, Response $response): void
    {
        try {
            $request->respondFile($response->status, $response->headers, $this->file);
        } finally {
            // The extension has it open, and reads on after it was deleted.
            $this->temporary === null || @\unlink($this->temporary);
        }
    }
}
