<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Native\HttpFile;
use Weft\Native\HttpStaticDir;

/**
 * Serves the files beside the front controller, as a web server does in front of it; every other request is the application's.
 *
 * @internal
 */
final class PublicDirectory
{
    private const HEADERS = ['cache-control' => 'no-cache', 'x-content-type-options' => 'nosniff'];

    private readonly HttpStaticDir $directory;

    /** @param callable(Request): Response $application */
    public function __construct(string $directory, private readonly mixed $application)
    {
        $this->directory = HttpStaticDir::open($directory, false);
    }

    public function __invoke(Request $request): Response
    {
        $file = \in_array($request->method(), ['GET', 'HEAD'], true) ? $this->find($request) : null;

        return $file === null ? ($this->application)($request) : new Response(200, self::HEADERS, new FileBody($file));
    }

    private function find(Request $request): ?HttpFile
    {
        $path = \rawurldecode(\ltrim($request->path(), '/'));
        // Source code is run, never sent.
        if ($path === '' || \str_ends_with($path, '/') || \preg_match('/\.ph(?:p\d?|tml|ar|ps)(?:$|\/)/i', $path) === 1) {
            return null;
        }
        $found = $this->directory->find($path, $request->header('accept-encoding') ?? '');

        return $found instanceof HttpFile ? $found : null;
    }
}
