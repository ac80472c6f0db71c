<?php

declare(strict_types=1);

namespace Weft\Runtime;

/** A permit of a {@see Semaphore}. */
final class Permit
{
    /** @internal */
    public function __construct(private ?\Closure $release)
    {
    }

    /** Returns the permit. Further calls have no effect. */
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
