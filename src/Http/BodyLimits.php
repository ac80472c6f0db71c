<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\PositiveLimits;

/** Limits of the body of a request; see {@see Limits}. `FormLimits` has those of forms. */
final class BodyLimits
{
    /**
     * @param int $bytes bytes of a request body, at least 1; more are answered 413. Raise it for uploads
     * @param float $timeout seconds between two reads of a body, above 0. Raise it for clients that pause
     * @param int|null $minRate the minimum average rate of a body in bytes per second, at least 1; a client may take `timeout` longer. Only the time that
     *     the server waits counts; null disables it. Lower it for devices with slow connections
     * @param int $window the flow control window of an HTTP/2 stream in bytes, 65,535 to 2,147,483,647. It limits a stream to that many bytes
     *     per round trip (the default to 5 MB/s at 50 ms), and its buffered bytes. Raise it for fast uploads over long distances
     *
     * @throws \ValueError for a value out of its bounds
     */
    public function __construct(
        public readonly int $bytes = 8_388_608,
        public readonly float $timeout = 30.0,
        public readonly ?int $minRate = 500,
        public readonly int $window = 262_144,
    ) {
        PositiveLimits::check('body.', $this);
        if ($window < 65_535 || $window > 0x7fff_ffff) {
            throw new \ValueError("The limit body.window must be from 65535 to 2147483647, got $window");
        }
    }

    /**
     * The limits of applications that are configured for PHP-FPM: bodies of as many bytes as `post_max_size` of php.ini says (8M); 0 there is no limit.
     */
    public static function ofPhp(): self
    {
        // PHP itself has warned of one that it cannot read.
        $bytes = @\ini_parse_quantity((string) \ini_get('post_max_size'));

        return new self(bytes: $bytes > 0 ? $bytes : \PHP_INT_MAX);
    }
}
