<?php

declare(strict_types=1);

namespace Weft\Bridge\Doctrine\Internal;

use Doctrine\DBAL\Driver;
use Doctrine\DBAL\VersionAwarePlatformDriver;

/*
 * The interface of drivers: DBAL 3 asks for the platform of a version only if the driver declares that it can answer, in DBAL 4 every
 * driver can.
 */
\class_alias(\interface_exists(VersionAwarePlatformDriver::class) ? VersionAwarePlatformDriver::class : Driver::class, __NAMESPACE__ . '\VersionAware');
