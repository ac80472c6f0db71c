<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\BodyWriter;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Http\Upload;
use Weft\Native\Realm;
use Weft\Runtime\Internal\CallScope;

/**
 * A request as PHP's superglobals, and what the application has done to `header()` and its output as a response.
 *
 * @internal
 */
final class RealmRequest
{
    /**
     * Handles a request in the realm that the task is in.
     *
     * @template T of object
     *
     * @param T $application
     * @param \Closure(T, Request): mixed $handle a {@see Response} that it returns is sent after what it has printed
     * @param array<string, mixed> $server in place of the request's own, such as SCRIPT_NAME
     * @param array<string, string> $environment where neither has a variable
     * @param bool $endsHere whether shutdown functions run and the session is closed now; otherwise {@see terminate()} does that
     *
     * @return array{Response, bool} and whether the application has called `exit()`, which ends the request here
     */
    public static function handle(Realm $realm, Request $request, object $application, \Closure $handle, array $server, array $environment, bool $endsHere): array
    {
        self::begin($realm, $request, $server, $environment);
        $level = \ob_get_level();
        \ob_start();
        Realm::hideBuffers(true);
        $isHandled = false;
        $result = null;
        try {
            $hasExited = self::untilExit(static function () use ($handle, $application, $request, &$result): void {
                $result = $handle($application, $request);
            });
            if ($endsHere || $hasExited) {
                self::shutDown($realm);
            }
            Realm::closeBuffers($level + 1, true);
            $output = (string) \ob_get_clean();
            $isHandled = true;
        } finally {
            try {
                // The lock of the session of a failed request is free before the realm is replaced.
                $isHandled || self::shutDown($realm);
            } finally {
                Realm::closeBuffers($level, false);
            }
        }
        $response = self::end($realm, $result instanceof Response && !$hasExited ? $result : null, $output);
        // A streamed body still reads the request.
        $endsHere && \is_string($response->body) && $realm->clear();

        return [$response, $hasExited];
    }

    /**
     * Ends a request whose response has been sent: output and header fields are lost, as they are then. What runs in the realm next finds nothing of it.
     *
     * @template T of object
     *
     * @param T $application
     * @param (\Closure(T): mixed)|null $terminate
     *
     * @return bool whether it has called `exit()`
     */
    public static function terminate(Realm $realm, object $application, ?\Closure $terminate): bool
    {
        $level = \ob_get_level();
        \ob_start();
        Realm::hideBuffers(true);
        try {
            $hasExited = $terminate !== null && self::untilExit(static fn(): mixed => $terminate($application));
        } finally {
            try {
                self::shutDown($realm);
            } finally {
                Realm::closeBuffers($level, false);
            }
        }
        $realm->clear();

        return $hasExited;
    }

    /** Runs the shutdown functions of a request and closes its session, as PHP does at the end of a script. */
    public static function shutDown(Realm $realm): void
    {
        try {
            // An exit() in one of them skips the others.
            self::untilExit($realm->runShutdownFunctions(...));
        } finally {
            if (\session_status() === \PHP_SESSION_ACTIVE) {
                \session_write_close();
            }
        }
    }

    /** As the native function. The tasks that `$work` has started belong to the request and end with it. */
    private static function untilExit(\Closure $work): bool
    {
        return (bool) CallScope::call(static fn(): bool => Realm::untilExit($work));
    }

    /**
     * The variables of the environment, and those that a .env file has added: `$_SERVER` has them beside those of the request.
     *
     * @return array<string, string>
     */
    public static function environment(): array
    {
        $variables = [];
        foreach (\array_intersect_key($_SERVER, \getenv() + $_ENV) as $name => $value) {
            // These would pass for header fields of the request.
            if (\is_string($value) && !\str_starts_with((string) $name, 'HTTP_')) {
                $variables[(string) $name] = $value;
            }
        }

        return $variables;
    }

    /**
     * @param array<string, mixed> $server
     * @param array<string, string> $environment
     */
    private static function begin(Realm $realm, Request $request, array $server, array $environment): void
    {
        // Of work between requests that has not ended it: it is not the session of this one.
        \session_status() === \PHP_SESSION_ACTIVE && \session_abort();
        $isMultipart = Form::isMultipart($request);
        $form = Form::isForm($request) ? $request->form() : [];
        $uploads = [];
        $files = $isMultipart ? self::files($request->parsedForm()->tree(withUnchosen: true), $uploads) : [];
        $query = $request->queryParameters();
        $realm->begin(
            \array_replace($environment, ServerParameters::of($request), $server),
            $query,
            $form,
            Cookies::ofPhp($request->header('cookie') ?? ''),
            $files,
            $form === [] ? $query : $form + $query,
            $isMultipart ? '' : $request->body(),
            $uploads,
        );
    }

    /** A response that the application has returned is sent last: after `header()` lines and output, with its own status. */
    private static function end(Realm $realm, ?Response $response, string $output): Response
    {
        [$status, $lines] = $realm->finish();
        /** @var array<string, list<string>> $fields */
        $fields = [];
        foreach ($lines as $line) {
            $parts = \explode(':', $line, 2);
            $fields[\strtolower($parts[0])][] = \trim($parts[1] ?? '');
        }
        if (isset($fields['status']) && \preg_match('/^[1-5]\d\d(?= |$)/D', $fields['status'][0], $found) === 1) {
            // As of a CGI program (RFC 3875 §6.3.3).
            $status = (int) $found[0];
            unset($fields['status']);
        }
        // The server frames the body.
        unset($fields['transfer-encoding'], $fields['content-length']);
        if ($response === null) {
            if ($output !== '' && !isset($fields['content-type'])) {
                $fields['content-type'] = [self::contentType()];
            }

            return new Response($status, $fields, $output);
        }
        if ($fields === [] && $output === '') {
            return $response;
        }
        foreach ($response->headers as $name => $values) {
            $values = \is_array($values) ? $values : [(string) $values];
            $fields[$name] = $name === 'content-type' || $name === 'location' ? $values : [...($fields[$name] ?? []), ...$values];
        }
        if ($output === '') {
            return new Response($response->status, $fields, $response->body);
        }
        unset($fields['content-length']);

        return new Response($response->status, $fields, self::after($output, $response->body));
    }

    /**
     * @param string|iterable<string>|\Closure(BodyWriter): mixed|Body $body
     *
     * @return string|\Closure(BodyWriter): mixed|Body
     */
    private static function after(string $output, string|iterable|\Closure|Body $body): string|\Closure|Body
    {
        if (\is_string($body) || $body instanceof Body) {
            return \is_string($body) ? $output . $body : $body;
        }

        return static function (BodyWriter $writer) use ($output, $body): void {
            $writer->write($output);
            StreamedBody::copy($body, $writer);
        };
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
        \array_walk_recursive($tree, static function (?Upload $upload) use (&$paths): void {
            $upload === null || $paths[] = $upload->path();
        });

        return $files;
    }

    private static function attribute(mixed $branch, string $attribute): mixed
    {
        if (\is_array($branch)) {
            return \array_map(static fn(mixed $inner): mixed => self::attribute($inner, $attribute), $branch);
        }
        if ($branch === null) {
            return match ($attribute) {
                'error' => \UPLOAD_ERR_NO_FILE,
                'size' => 0,
                default => '',
            };
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
