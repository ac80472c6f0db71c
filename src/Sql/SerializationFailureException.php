<?php

declare(strict_types=1);

namespace Weft\Sql;

/** A concurrent transaction changed what this one had read (SQLSTATE 40001). */
final class SerializationFailureException extends TransactionAbortedException
{
}
