<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Http\Fault;

/**
 * The value of one argument does not match its type.
 *
 * @internal
 */
final class FaultsException extends \Exception
{
    /**
     * @param int $status 400 or 422
     * @param non-empty-list<Fault> $faults
     */
    public function __construct(public readonly int $status, public readonly array $faults)
    {
        parent::__construct('the request is invalid');
    }
}
