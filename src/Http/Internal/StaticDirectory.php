<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\NotFoundException;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Native\HttpFile;
use Weft\Native\HttpStaticDir;

/**
 * Serves the files of a directory.
 *
 * @internal
 */
final class StaticDirectory
{
    /** The route parameter with the path within the directory. */
    public const PATH = 'path';

    /** @param array<string, string> $headers of every file */
    public function __construct(
        private readonly HttpStaticDir $directory,
        private readonly ?string $index,
        private readonly array $headers,
    ) {
    }

    public function answer(Request $request): Response
    {
        $path = $request->parameters[self::PATH];
        $isDirectory = $path === '' || \str_ends_with($path, '/');
        if ($isDirectory && $this->index === null) {
            throw new NotFoundException();
        }
        $found = $this->directory->find($isDirectory ? $path . $this->index : $path, $request->header('accept-encoding') ?? '');
        if ($found instanceof HttpFile) {
            return new Response(200, $this->headers, new FileBody($found));
        }

        return $found === true && !$isDirectory && $this->index !== null ? self::toDirectory($request) : throw new NotFoundException();
    }

    /** A relative location, so that no path redirects to another host. */
    public static function toDirectory(Request $request): Response
    {
        $path = $request->path();
        $name = \substr($path, (int) \strrpos($path, '/') + 1);
        $query = $request->queryString();

        return Response::redirect("./$name/" . ($query === '' ? '' : "?$query"), 301);
    }
}
