<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Internal;

use Illuminate\Foundation\Application;
use Weft\Http\Response;

/**
 * A booted application in a realm, which handles one request or job at a time.
 *
 * @internal
 */
interface Served
{
    /** Handles the request that PHP's superglobals describe. */
    public function handle(): Response;

    /** Runs what is to be done when the response has been sent. */
    public function terminate(): void;

    /**
     * Runs something else than a request, such as a job.
     *
     * @template T
     *
     * @param \Closure(Application): T $work
     *
     * @return T
     */
    public function run(\Closure $work): mixed;

    /** Forgets the request or job. */
    public function reset(): void;

    /** The application is dropped, maybe in the middle of a request that has ended with `exit()`: its connections are closed, or given back. */
    public function close(): void;
}
