<?php

declare(strict_types=1);

namespace Weft\Bus;

/** When what a handler publishes leaves. */
enum Publishing
{
    /**
     * After the handler has returned and its transaction, if it has one, has committed; confirmed by the broker before
     * the handled message is acknowledged. When the handler throws, nothing leaves.
     */
    case AfterCommit;

    /**
     * At once, without waiting for the broker: a message may leave although the transaction is rolled back later, and may
     * be lost although it commits. For comparison with systems that work this way. A transport inside the handlers'
     * own database publishes with the transaction all the same.
     */
    case BeforeCommitUnconfirmed;
}
