<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Bus\Internal\Sending\Due;
use Weft\Bus\Internal\Sending\MessageHeaders;

/**
 * How a message is sent: by the {@see Bus}, by a handler's {@see Context}, or by a saga.
 *
 * ```php
 * $bus->send(new Remind($customer), new SendOptions(delay: 3600.0, headers: ['origin' => 'import']));
 * ```
 *
 * A delayed message is stored in the database, and without one in queues of RabbitMQ. Any process that consumes with the same database
 * publishes it when it is due, at most about 0.25 seconds late. Delays follow the wall clock.
 */
final class SendOptions
{
    /**
     * @param float|null              $delay    seconds until the message is published, at least 0, rounded to milliseconds. Set it for reminders and
     *                                          deadlines; default: published at once
     * @param \DateTimeInterface|null $at       when the message is published, instead of a delay; a past time means now. Set it where a date is
     *                                          agreed on, not a time from now
     * @param int<0, 9>|null          $priority higher ones are handled first; null for that of {@see Priority} or 4. Set it for single
     *                                          urgent messages; refused with a \ValueError for a message that {@see OrderedBy} orders
     * @param float|null              $expires  seconds after publishing until the message is dropped unhandled, above 0; null for that of
     *                                          {@see Expires} or never. Set it where a late message is worthless
     * @param string|null             $key      orders the message by this key instead of the property that {@see OrderedBy} names; not
     *                                          empty. Only for classes with `#[OrderedBy]`
     * @param array<string, string>   $headers  of the application, UTF-8, 32 KiB in total; names that begin with `weft-` are reserved, as are
     *                                          `CC`, `BCC`, `x-death` and others that RabbitMQ interprets. Set them for what middleware or
     *                                          other programs read
     * @param bool                    $confirm  whether the call waits for the broker's confirmation. Without it a lost connection may lose
     *                                          the message, and an unroutable command is not reported. Switch it off for messages that may
     *                                          be lost. Has no effect in handlers, whose messages are published after their commit
     * @param string|null             $id       names a delayed message for {@see Bus::cancel()}, 1 to 90 bytes; while it waits, a second one of
     *                                          this name is refused with {@see AlreadyScheduledException} by the call that sends it. Set it where the
     *                                          program must not remember the returned id; needs a database. Default: the message id
     *
     * @throws \ValueError when a value is out of its bounds, or both a delay and a time are given
     */
    public function __construct(
        public readonly ?float $delay = null,
        public readonly ?\DateTimeInterface $at = null,
        public readonly ?int $priority = null,
        public readonly ?float $expires = null,
        public readonly ?string $key = null,
        public readonly array $headers = [],
        public readonly bool $confirm = true,
        public readonly ?string $id = null,
    ) {
        Due::check($delay, $at);
        $priority === null || MessageHeaders::priority($priority);
        $expires === null || MessageHeaders::lifetime($expires);
        $headers === [] || MessageHeaders::check($headers);
        if ($id !== null && ($id === '' || \strlen($id) > 90 || \preg_match('/^[^\x00]*$/Du', $id) !== 1 || ($delay === null && $at === null))) {
            throw new \ValueError('The id of a delayed message must have 1 to 90 bytes of UTF-8 without NUL and comes with a delay or a time, got "' . \mb_scrub($id, 'UTF-8') . '"');
        }
        $key !== '' || throw new \ValueError('The ordering key of a message must not be empty');
    }

    /**
     * @internal
     *
     * @return float|null when the message is due, as microtime(true) has it; null for now
     */
    public function due(): ?float
    {
        return $this->delay === null && $this->at === null ? null : Due::of($this->delay, $this->at);
    }

    /**
     * @internal
     *
     * @param float|null $due when the message is published, as microtime(true) has it; null for now
     * @return array<string, string>
     */
    public function headers(?float $due): array
    {
        $headers = MessageHeaders::headers($this->priority, $this->expires, $due, $this->headers);

        if ($this->id !== null) {
            $headers[Header::DELAY_ID] = $this->id;
        }

        return $this->key === null ? $headers : [Header::ORDER_KEY => $this->key] + $headers;
    }
}
