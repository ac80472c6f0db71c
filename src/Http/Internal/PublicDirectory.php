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

    private ?HttpStaticDir $directory = null;

    /**
     * @param callable(Request): Response $application
     * @param bool $isOptional whether the directory may be made later, or never
     */
    public function __construct(private readonly string $path, private readonly mixed $application, bool $isOptional = false)
    {
        if (!$isOptional) {
            $this->directory = HttpStaticDir::open($path, false);
        }
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
        if ($this->directory === null && !\is_dir($this->path)) {
            return null;
        }
        $this->directory ??= HttpStaticDir::open($this->path, false);
        $found = $this->directory->find($path, $request->header('accept-encoding') ?? '');

        return $found instanceof HttpFile ? $found : null;
    }
}
