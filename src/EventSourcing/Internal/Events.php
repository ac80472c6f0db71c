<?php

declare(strict_types=1);

namespace Weft\EventSourcing\Internal;

use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\Internal\Schema\Upcasters;
use Weft\Bus\MessageDecodingException;
use Weft\EventSourcing\InvalidEventException;
use Weft\EventSourcing\RecordedEvent;
use Weft\EventSourcing\UnknownEventException;

/**
 * The registered event classes and upcasters.
 *
 * @internal
 */
final class Events
{
    public readonly Codec $codec;

    public readonly Upcasters $upcasters;

    public function __construct()
    {
        $this->codec = new Codec();
        $this->upcasters = new Upcasters($this->codec);
    }

    /** @param array<string, mixed> $row */
    public function read(array $row): RecordedEvent
    {
        $what = "Event {$row['version']} of stream \"{$row['stream']}\"";
        $class = $this->codec->ofType($row['type']) ?? throw new UnknownEventException("{$what} is of type \"{$row['type']}\", which has no known class: pass its class to the EventStore");
        if ($row['schema_version'] > $class->version) {
            throw new UnknownEventException("{$what} is of version {$row['schema_version']} of \"{$row['type']}\", {$class->class} is version {$class->version}");
        }
        try {
            $event = $class->decode($row['body'], $row['schema_version'] === $class->version
                ? null
                : /** @param array<string, mixed> $data */ fn(array $data): array => $this->upcasters->bring($class, $data, $row['schema_version']));
        } catch (MessageDecodingException $failed) {
            throw new InvalidEventException("{$what}, version {$row['schema_version']} of \"{$row['type']}\", does not match {$class->class}: {$failed->getMessage()}", $failed);
        }

        return new RecordedEvent(
            $row['position'],
            $row['stream'],
            $row['version'],
            $event,
            \json_decode($row['headers'], true, flags: \JSON_THROW_ON_ERROR),
            new \DateTimeImmutable(\sprintf('@%d.%03d', \intdiv($row['recorded_at'], 1000), $row['recorded_at'] % 1000)),
        );
    }
}
