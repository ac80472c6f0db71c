<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\FormLimits;
use Weft\Http\HttpException;
use Weft\Http\PayloadTooLargeException;
use Weft\Http\Request;
use Weft\Http\Upload;
use Weft\Native\HttpUpload;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;

/**
 * The fields and files of a form, URL-encoded or multipart.
 *
 * @internal
 */
final class Form
{
    private const ENCODED = 'application/x-www-form-urlencoded';
    private const MULTIPART = 'multipart/form-data';

    /**
     * @param array<array-key, mixed> $values
     * @param list<Upload> $uploads
     * @param list<Upload|string> $files the uploads, and the names of the file fields without a chosen file, in the order of the form
     */
    private function __construct(public readonly array $values, public readonly array $uploads, private readonly array $files = [])
    {
    }

    /** A request without a content type and without a body, such as a GET, has an empty form. */
    #[WaitsFor('the form of an HTTP request')]
    public static function read(Request $request, FormLimits $limits): self
    {
        if (!self::isMultipart($request)) {
            if (!self::isForm($request) && ($request->header('content-type') !== null || $request->body() !== '')) {
                throw new HttpException(415, 'The body must be a form, with the content type ' . self::ENCODED . ' or ' . self::MULTIPART, ['accept-post' => self::ENCODED . ', ' . self::MULTIPART]);
            }

            return new self(self::values($request->body(), 'form'), []);
        }
        $pairs = $uploads = $files = [];
        /** @var array<string, int|string> $bounds */
        $bounds = \get_object_vars($limits);
        /** @var list<array{string, string|HttpUpload|null}> $fields */
        $fields = Scheduler::await($request->readForm($bounds, $limits->directory));
        foreach ($fields as [$name, $value]) {
            if ($value instanceof HttpUpload) {
                $uploads[] = $files[] = new Upload($value, $name);
            } elseif ($value === null) {
                $files[] = $name;
            } else {
                $pairs[] = \rawurlencode($name) . '=' . \rawurlencode($value);
            }
        }

        return new self(self::values(\implode('&', $pairs), 'form'), $uploads, $files);
    }

    /**
     * `parse_str()`, which would drop values beyond `max_input_vars` and `max_input_nesting_level`.
     *
     * @return array<array-key, mixed>
     *
     * @throws PayloadTooLargeException
     */
    public static function values(string $encoded, string $what): array
    {
        $most = (int) \ini_get('max_input_vars');
        if (\strlen($encoded) > $most && \substr_count($encoded, '&') >= $most) {
            throw new PayloadTooLargeException("The $what has more than $most values (max_input_vars)");
        }
        $levels = (int) \ini_get('max_input_nesting_level');
        if (self::brackets($encoded) > $levels && self::isDeeper($encoded, $levels)) {
            throw new PayloadTooLargeException("The $what has a value that is nested deeper than $levels levels (max_input_nesting_level)");
        }
        // A byte of zero as it is ends the text for PHP before 8.6, and later versions throw.
        \parse_str(\str_replace("\0", '%00', $encoded), $values);

        return $values;
    }

    private static function brackets(string $encoded): int
    {
        return \substr_count($encoded, '[') + \substr_count($encoded, '%5B') + \substr_count($encoded, '%5b');
    }

    /** Whether PHP would drop a value for the depth of its name. */
    private static function isDeeper(string $encoded, int $levels): bool
    {
        $values = [];
        foreach (\explode('&', $encoded) as $pair) {
            $name = \explode('=', $pair, 2)[0];
            if (self::brackets($name) > $levels) {
                // PHP reads one name: what it takes for a level is its decision.
                @\parse_str(\str_replace("\0", '%00', $name) . '=', $values);
                if ($values === []) {
                    return true;
                }
            }
        }

        return false;
    }

    /**
     * @param bool $withUnchosen whether a field without a chosen file is in it, as null
     *
     * @return array<array-key, mixed> of `Upload`, nested as `a[b]` says
     */
    public function tree(bool $withUnchosen = false): array
    {
        $pairs = [];
        foreach ($this->files as $index => $file) {
            if (!\is_string($file)) {
                $pairs[] = \rawurlencode($file->field) . "=$index";
            } elseif ($withUnchosen) {
                $pairs[] = \rawurlencode($file) . "=$index";
            }
        }
        $tree = self::values(\implode('&', $pairs), 'form');
        \array_walk_recursive($tree, function (mixed &$index): void {
            \assert(\is_string($index));
            $file = $this->files[(int) $index];
            $index = \is_string($file) ? null : $file;
        });

        /** @var array<array-key, mixed> $tree */
        return $tree;
    }

    public static function isForm(Request $request): bool
    {
        return \in_array(self::mediaType($request), [self::ENCODED, self::MULTIPART], true);
    }

    public static function isMultipart(Request $request): bool
    {
        return self::mediaType($request) === self::MULTIPART;
    }

    /** Without its parameters. */
    private static function mediaType(Request $request): string
    {
        return \strtolower(\rtrim(\explode(';', $request->header('content-type') ?? '', 2)[0]));
    }
}
