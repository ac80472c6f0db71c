<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

enum SagaStatus: string
{
    case Active = 'active';
    case Completed = 'completed';
    case Failed = 'failed';

    /** Its time was over before it ended. */
    case Expired = 'expired';

    /** Active again after its end. */
    case Reopened = 'reopened';

    /** Whether it takes messages. */
    public function isOpen(): bool
    {
        return $this === self::Active || $this === self::Reopened;
    }
}
