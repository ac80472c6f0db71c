<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Exception\MessageDecodingFailedException;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;

/** A format that no other serializer reads. */
final class LetterSerializer implements SerializerInterface
{
    /** @param array<array-key, mixed> $encodedEnvelope */
    public function decode(array $encodedEnvelope): Envelope
    {
        $body = (string) $encodedEnvelope['body'];

        return \str_starts_with($body, 'Dear reader, ')
            ? new Envelope(new Letter(\substr($body, \strlen('Dear reader, '))))
            : throw new MessageDecodingFailedException("This is no letter: $body");
    }

    /** @return array{body: string} */
    public function encode(Envelope $envelope): array
    {
        $letter = $envelope->getMessage();
        \assert($letter instanceof Letter);

        return ['body' => "Dear reader, $letter->text"];
    }
}
