<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

/**
 * The result of a check of `weft doctor`.
 *
 * @internal
 */
final class Finding
{
    /** @param ?string $advice what to do; null if the check passed */
    private function __construct(
        public readonly Health $health,
        public readonly string $subject,
        public readonly string $found,
        public readonly ?string $advice,
    ) {
    }

    public static function ok(string $subject, string $found): self
    {
        return new self(Health::Ok, $subject, $found, null);
    }

    public static function warn(string $subject, string $found, string $advice): self
    {
        return new self(Health::Warn, $subject, $found, $advice);
    }

    public static function fail(string $subject, string $found, string $advice): self
    {
        return new self(Health::Fail, $subject, $found, $advice);
    }
}
