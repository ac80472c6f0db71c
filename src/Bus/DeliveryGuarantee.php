<?php

declare(strict_types=1);

namespace Weft\Bus;

/** When what a handler publishes leaves, and what is written down about it. Each case after the first is named for what it drops. */
enum DeliveryGuarantee
{
    /**
     * The default. With a database: the handled message is noted in the inbox and what the handler sends in the outbox, both
     * in the handler's own transaction; the messages leave right after its commit, confirmed. A message that is delivered
     * again has no second effect, and what a crash kept from leaving is sent by the relay. See {@see InboxOptions}.
     *
     * Without a database there is nowhere to note it: then it is {@see AtLeastOnce}.
     */
    case Transactional;

    /**
     * After the handler has returned and its transaction, if it has one, has committed; confirmed by the broker before
     * the handled message is acknowledged. When the handler throws, nothing leaves. After a crash in between, effects
     * happen again and their messages are sent again under other ids.
     */
    case AtLeastOnce;

    /**
     * At once, without waiting for the broker: a message may leave although the transaction is rolled back later, and may
     * be lost although it commits. For comparison with systems that work this way. A transport inside the handlers'
     * own database publishes with the transaction all the same.
     */
    case BestEffort;
}
