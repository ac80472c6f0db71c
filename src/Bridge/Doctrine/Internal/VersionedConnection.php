<?php

declare(strict_types=1);

namespace Weft\Bridge\Doctrine\Internal;

use Doctrine\DBAL\Driver\Connection;
use Doctrine\DBAL\Driver\ServerInfoAwareConnection;

/*
 * The interface of connections: DBAL 3 asks for the server's version only if the connection declares that it can answer, in DBAL 4 every
 * connection can.
 */
\class_alias(\interface_exists(ServerInfoAwareConnection::class) ? ServerInfoAwareConnection::class : Connection::class, __NAMESPACE__ . '\VersionedConnection');
