<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

enum SagaStatus: string
{
    case Active = 'active';
    case Completed = 'completed';
    case Failed = 'failed';

    /** It expired before it ended. */
    case Expired = 'expired';

    /** Open again after its end. */
    case Reopened = 'reopened';

    /** Whether it handles messages. */
    public function isOpen(): bool
    {
        return $this === self::Active || $this === self::Reopened;
    }
}
