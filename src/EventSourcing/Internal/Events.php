<?php

declare(strict_types=1);

namespace Weft\EventSourcing\Internal;

use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\MessageDecodingFailed;
use Weft\EventSourcing\EventInvalid;
use Weft\EventSourcing\RecordedEvent;
use Weft\EventSourcing\UnknownEvent;

/**
 * Event classes and what brings older versions up to them.
 *
 * @internal
 */
final class Events
{
    public readonly Codec $codec;

    /** @var array<string, array<int, \Closure(array<string, mixed>): array<string, mixed>>> by type and the version it takes */
    private array $upcasters = [];

    public function __construct()
    {
        $this->codec = new Codec();
    }

    /** @param \Closure(array<string, mixed>): array<string, mixed> $upcast */
    public function upcast(string $type, int $from, \Closure $upcast): void
    {
        $this->upcasters[$type][$from] = $upcast;
    }

    /** @param array<string, mixed> $row */
    public function read(array $row): RecordedEvent
    {
        $what = "Event {$row['version']} of stream \"{$row['stream']}\"";
        $class = $this->codec->ofType($row['type']) ?? throw new UnknownEvent("{$what} is of type \"{$row['type']}\", of which no class is known: name it to the EventStore");
        if ($row['schema_version'] > $class->version) {
            throw new UnknownEvent("{$what} is of version {$row['schema_version']} of \"{$row['type']}\", {$class->class} is version {$class->version}");
        }
        try {
            $event = $class->decode($this->lift($row['type'], $row['schema_version'], $class->version, $row['body']));
        } catch (MessageDecodingFailed $failed) {
            throw new EventInvalid("{$what}, version {$row['schema_version']} of \"{$row['type']}\", does not fit {$class->class}: {$failed->getMessage()}", $failed);
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

    private function lift(string $type, int $from, int $to, string $body): string
    {
        $steps = \array_intersect_key($this->upcasters[$type] ?? [], \array_flip($from < $to ? \range($from, $to - 1) : []));
        if ($steps === []) {
            return $body;
        }
        \ksort($steps);
        $data = \json_decode($body, true, flags: \JSON_THROW_ON_ERROR);
        foreach ($steps as $step) {
            $data = $step($data);
        }

        return \json_encode((object) $data, \JSON_THROW_ON_ERROR | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_PRESERVE_ZERO_FRACTION);
    }
}
