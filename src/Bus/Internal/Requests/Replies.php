<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Requests;

use Psr\Log\LoggerInterface;
use Weft\Bus\BusException;
use Weft\Bus\Header;
use Weft\Bus\Internal\Sending\EnvelopeFactory;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\MessageEncodingException;
use Weft\Bus\PublicFailure;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\UndefinedQueueException;
use Weft\Internal\Codec\MismatchException;
use Weft\Internal\Codec\MixedType;
use Weft\Sql\Transaction;

/**
 * Encodes and sends replies.
 *
 * @internal
 */
final class Replies
{
    /** The type of replies that are not messages: null, scalars and arrays. */
    public const VALUE = 'weft.value';

    /** The type of replies that report a failure. */
    public const ERROR = 'weft.error';

    /** Prefix of the names of reply queues. */
    public const QUEUES = 'weft.replies.';

    private const ERROR_BYTES = 2_000;

    public function __construct(
        private readonly EnvelopeFactory $envelopes,
        private readonly Transport $transport,
        private readonly LoggerInterface $logger,
    ) {}

    /**
     * @param Transaction|null $transaction after whose commit it is sent
     *
     * @throws MessageEncodingException|\Weft\Bus\InvalidMessageClassError when it cannot travel
     */
    public function of(Delivery $delivery, mixed $value, ?Transaction $transaction = null): Outgoing
    {
        $headers = [Header::REPLY_TO_MESSAGE => $delivery->headers[Header::MESSAGE_ID] ?? ''];
        if (\is_object($value)) {
            return $this->envelopes->wrap(MessageKind::Query, $value, null, $headers, transaction: $transaction);
        }
        try {
            // JSON would carry the public properties of objects in an array, and not their class.
            return new Outgoing(self::VALUE, \json_encode((new MixedType())->encode($value), \JSON_THROW_ON_ERROR | \JSON_PRESERVE_ZERO_FRACTION | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE), $headers);
        } catch (MismatchException $mismatch) {
            throw MessageEncodingException::reply(\get_debug_type($value), "at {$mismatch->path()} {$mismatch->problem}", $mismatch->path());
        } catch (\JsonException $exception) {
            throw MessageEncodingException::reply(\get_debug_type($value), $exception->getMessage());
        }
    }

    /** Contains only what {@see PublicFailure} permits: exception messages may contain hosts, statements and values. */
    public function ofFailure(Delivery $delivery, \Throwable $thrown): Outgoing
    {
        $message = $thrown instanceof PublicFailure
            ? $thrown->getMessage()
            : 'the log of the handler has the reason, with the id ' . ($delivery->headers[Header::MESSAGE_ID] ?? '');

        return new Outgoing(self::ERROR, '', [
            Header::REPLY_TO_MESSAGE => $delivery->headers[Header::MESSAGE_ID] ?? '',
            Header::ERROR_CLASS => $thrown::class,
            Header::ERROR_MESSAGE => \mb_strcut(\mb_scrub($message, 'UTF-8'), 0, self::ERROR_BYTES, 'UTF-8'),
        ]);
    }

    /** The requester may have ended, which is not a failure of the handler. */
    public function send(Delivery $delivery, Outgoing $reply): void
    {
        if (!\str_starts_with($delivery->headers[Header::REPLY_TO], self::QUEUES)) {
            // Otherwise a sender could put messages into any queue.
            $this->logger->warning('Message {id} requests a reply to {queue}, which is not a reply queue', [
                'id' => $delivery->headers[Header::MESSAGE_ID] ?? '',
                'queue' => $delivery->headers[Header::REPLY_TO],
            ]);

            return;
        }
        try {
            $this->transport->put($delivery->headers[Header::REPLY_TO], [$reply]);
        } catch (UndefinedQueueException) {
            $this->logger->debug('The reply to message {id} is discarded: its requester has stopped waiting', ['id' => $delivery->headers[Header::MESSAGE_ID] ?? '']);
        } catch (BusException $exception) {
            $this->logger->warning('The reply to message {id} could not be sent: {error}', [
                'id' => $delivery->headers[Header::MESSAGE_ID] ?? '',
                'error' => $exception->getMessage(),
                'exception' => $exception,
            ]);
        }
    }
}
