<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Http\Upload;
use Weft\Native\Realm;

/**
 * A request as PHP's superglobals, and what the application has done to `header()` and its output as a response.
 *
 * @internal
 */
final class RealmRequest
{
    /** @param array<string, string> $server in place of the request's own, such as SCRIPT_NAME */
    public static function begin(Realm $realm, Request $request, array $server): void
    {
        $isMultipart = Form::isMultipart($request);
        $isForm = $isMultipart || \stripos($request->header('content-type') ?? '', 'application/x-www-form-urlencoded') === 0;
        $form = $isForm ? $request->form() : [];
        $uploads = [];
        $files = $isMultipart ? self::files($request->parsedForm()->tree(), $uploads) : [];
        $query = $request->queryParameters();
        $realm->begin(
            $server + ServerParameters::of($request) + ['REMOTE_ADDR' => '127.0.0.1', 'GATEWAY_INTERFACE' => 'CGI/1.1'],
            $query,
            $form,
            $request->cookies(),
            $files,
            $form + $query,
            $isMultipart ? '' : $request->body(),
            $uploads,
        );
    }

    /** @param Response|null $response what the application has returned; its headers come before those of `header()` */
    public static function end(Realm $realm, ?Response $response, string $output): Response
    {
        [$status, $lines] = $realm->finish();
        $response ??= new Response(200, [], $output);
        if ($status !== 0) {
            $response = $response->withStatus($status);
        }
        $fields = [];
        foreach ($lines as $line) {
            $parts = \explode(':', $line, 2);
            $fields[\strtolower($parts[0])][] = \trim($parts[1] ?? '');
        }
        foreach ($fields as $name => $values) {
            if ($name === 'transfer-encoding' || $name === 'content-length') {
                // The server frames the body.
                continue;
            }
            $own = $response->headers[$name] ?? [];
            $response = $response->withHeader((string) $name, [...(\is_array($own) ? $own : [(string) $own]), ...$values]);
        }
        if ($response->header('content-type') === null && $response->body !== '') {
            $response = $response->withHeader('content-type', self::contentType());
        }

        return $response;
    }

    private static function contentType(): string
    {
        $type = (string) \ini_get('default_mimetype');
        $charset = (string) \ini_get('default_charset');

        return $charset !== '' && \str_starts_with($type, 'text/') ? "$type; charset=$charset" : $type;
    }

    /**
     * `$_FILES`: of an array of uploads each attribute is an array of the same shape.
     *
     * @param array<array-key, mixed> $tree
     * @param list<string> $paths collects the files that `move_uploaded_file()` accepts
     *
     * @return array<array-key, array<string, mixed>>
     */
    private static function files(array $tree, array &$paths): array
    {
        $files = [];
        foreach ($tree as $name => $branch) {
            foreach (['name', 'full_path', 'type', 'tmp_name', 'error', 'size'] as $attribute) {
                $files[$name][$attribute] = self::attribute($branch, $attribute);
            }
        }
        \array_walk_recursive($tree, static function (Upload $upload) use (&$paths): void {
            $paths[] = $upload->path();
        });

        return $files;
    }

    private static function attribute(mixed $branch, string $attribute): mixed
    {
        if (\is_array($branch)) {
            return \array_map(static fn(mixed $inner): mixed => self::attribute($inner, $attribute), $branch);
        }
        \assert($branch instanceof Upload);

        return match ($attribute) {
            'name', 'full_path' => $branch->name,
            'type' => $branch->type ?? '',
            'tmp_name' => $branch->path(),
            'error' => \UPLOAD_ERR_OK,
            default => $branch->size,
        };
    }
}
