<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

/**
 * A handler returned something that no response can be made of; the message completes "The handler …".
 *
 * @internal
 */
final class UnusableResultException extends \Exception
{
    /** The error that is logged. */
    public function error(?HandlerPlan $plan): \TypeError
    {
        return new \TypeError('The handler ' . ($plan === null ? '' : "{$plan->source} of \"{$plan->path}\" ") . $this->getMessage(), previous: $this->getPrevious());
    }
}
