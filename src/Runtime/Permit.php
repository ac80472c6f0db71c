<?php

declare(strict_types=1);

namespace Weft\Runtime;

/** A right given by a Semaphore. */
final class Permit
{
    /** @internal */
    public function __construct(private ?\Closure $release)
    {
    }

    /** Gives it back. The second time has no effect. */
    public function release(): void
    {
        $release = $this->release;
        $this->release = null;
        if ($release !== null) {
            $release();
        }
    }

    public function __destruct()
    {
        $this->release();
    }
}
