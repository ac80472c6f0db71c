<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Internal\Number;

/**
 * Which files {@see Router::static()} serves, and how long clients keep them.
 *
 * ```
 * $routes->static('/assets', __DIR__ . '/public', new StaticOptions(maxAge: 31_536_000.0, immutable: true));
 * ```
 */
final class StaticOptions
{
    /** Caches take a larger number for this one (RFC 9111 §1.2.2). */
    private const LONGEST_AGE = 2 ** 31;

    /**
     * @param string|null $index the file served for a directory; null serves none. Set null where directories must answer 404
     * @param float $maxAge seconds a client may cache a file, at least 0; with 0 it revalidates every time and gets 304. Raise it where old
     *     files may be used for that long after a release
     * @param bool $immutable the content behind a name never changes: clients do not revalidate within `maxAge`. Set it where names contain a
     *     hash of the content
     * @param bool $hidden serves files whose name begins with a dot. Set it for `.well-known`, in a directory without secrets
     *
     * @throws \ValueError for a `maxAge` below 0
     */
    public function __construct(
        public readonly ?string $index = 'index.html',
        public readonly float $maxAge = 0.0,
        public readonly bool $immutable = false,
        public readonly bool $hidden = false,
    ) {
        if (!($maxAge >= 0.0)) {
            throw new \ValueError('maxAge must be at least 0 seconds, got ' . Number::text($maxAge));
        }
    }

    /** @internal the value of `Cache-Control` */
    public function cacheControl(): string
    {
        return $this->maxAge === 0.0 ? 'no-cache' : 'public, max-age=' . (int) \min($this->maxAge, self::LONGEST_AGE) . ($this->immutable ? ', immutable' : '');
    }
}
