<?php

declare(strict_types=1);

namespace Weft\Sql;

/**
 * COMMIT was sent and its answer never came: the connection broke, or the wait was cancelled. The transaction is committed or
 * rolled back, as a whole.
 *
 * Before you repeat it, read back something that only it has written, such as a row with a unique id, or make the repetition
 * harmless (`INSERT … ON CONFLICT DO NOTHING`, an inbox).
 *
 * A cancelled {@see Transaction::commit()} throws its `CancelledException` with this as the previous exception.
 */
final class TransactionOutcomeUnknownException extends ConnectionLostException
{
}
