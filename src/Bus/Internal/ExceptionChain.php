<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

/**
 * An exception with its previous exceptions.
 *
 * @internal
 */
final class ExceptionChain
{
    /**
     * The exception and all its previous exceptions, each once: a chain may be circular.
     *
     * @return iterable<\Throwable>
     */
    public static function of(\Throwable $thrown): iterable
    {
        $seen = [];
        for ($error = $thrown; $error !== null && !isset($seen[\spl_object_id($error)]); $error = $error->getPrevious()) {
            $seen[\spl_object_id($error)] = true;
            yield $error;
        }
    }
}
