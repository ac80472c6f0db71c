<?php

declare(strict_types=1);

namespace App;

use Doctrine\ORM\Configuration;

/** Entities that Doctrine loads when they are used for the first time. */
final class LazyObjects
{
    /** Symfony 8 has no lazy objects of its own: PHP has them since 8.4. */
    public static function of(Configuration $mapping): Configuration
    {
        if (\PHP_VERSION_ID >= 80_400 && \method_exists($mapping, 'enableNativeLazyObjects')) {
            $mapping->enableNativeLazyObjects(true);
        }

        return $mapping;
    }
}
