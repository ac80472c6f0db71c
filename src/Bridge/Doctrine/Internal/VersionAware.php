<?php

declare(strict_types=1);

namespace Weft\Bridge\Doctrine\Internal;

use Doctrine\DBAL\Driver;
use Doctrine\DBAL\VersionAwarePlatformDriver;

/*
 * What a driver implements: DBAL 3 asks it for the platform of a version only where it says that it can answer, in DBAL 4 every
 * driver can.
 */
\class_alias(\interface_exists(VersionAwarePlatformDriver::class) ? VersionAwarePlatformDriver::class : Driver::class, __NAMESPACE__ . '\VersionAware');
