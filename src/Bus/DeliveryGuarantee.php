<?php

declare(strict_types=1);

namespace Weft\Bus;

/** Decides what a crash may lose or repeat, and when messages from handlers are published. */
enum DeliveryGuarantee
{
    /**
     * Inbox and outbox, the default: with a database, the handled message is recorded in the inbox and the messages that the handler sends
     * are stored in the outbox, both in the handler's own transaction. They are published right after its commit and confirmed by the
     * broker. A redelivered message has no second effect; the outbox relay publishes what a crash left behind. See {@see InboxOptions}.
     *
     * Without a database this is the same as {@see AtLeastOnce}.
     */
    case Transactional;

    /**
     * Messages are published after the handler has returned and its transaction has committed, and are confirmed by the broker before the
     * handled message is acknowledged. When the handler throws, nothing is published. After a crash in between, effects happen again and
     * their messages are sent again with other ids.
     */
    case AtLeastOnce;

    /**
     * Messages are published immediately and without confirmation: a message may be published although its transaction rolls back, and
     * may be lost although it commits. For comparison with systems that work this way. A transport in the handlers' own database still
     * publishes with the transaction.
     */
    case BestEffort;
}
