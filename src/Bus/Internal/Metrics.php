<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Bus\Internal\Codec\Codec;
use Weft\Native;
use Weft\Native\Histogram;

/**
 * Counts outcomes of messages by type for `/metrics`. All types without a class in the program share one label value, so that senders
 * cannot create series.
 *
 * @internal
 */
final class Metrics
{
    private const OTHER = 'other';

    private const HELP = [
        'succeeded' => 'Messages that all handlers processed successfully.',
        'failed' => 'Failed attempts to handle a message.',
        'retried' => 'Failed messages scheduled for a delayed retry.',
        'dead_lettered' => 'Failed messages moved to the dead-letter queue.',
        'redelivered' => 'Deliveries that the broker marked as redelivered.',
    ];

    /** @var array<string, Histogram> by type; the process has one of each, whichever bus it is */
    private static array $seconds = [];

    /** @var array<string, int> by type */
    private static array $inFlight = [];

    private function __construct(private readonly Codec $codec) {}

    /** Null when metrics are disabled. */
    public static function of(Codec $codec): ?self
    {
        return Native\measured() ? new self($codec) : null;
    }

    public function began(string $type, bool $redelivered, int $count = 1): void
    {
        $this->move($type, $count);
        $redelivered && $this->count('redelivered', $type, $count);
    }

    public function ended(string $type, int $count = 1): void
    {
        $this->move($type, -$count);
    }

    public function succeeded(string $type, float $seconds): void
    {
        $this->count('succeeded', $type);
        $known = $this->known($type);
        self::$seconds[$known] ??= new Histogram('weft_bus_handler_duration_seconds', 'Time from the start of handling a message to its acknowledgement.', ['type' => $known]);
        self::$seconds[$known]->record($seconds);
    }

    /** @param 'failed'|'retried'|'dead_lettered'|'redelivered'|'succeeded' $what */
    public function count(string $what, string $type, int $by = 1): void
    {
        Native\addToCounter("weft_bus_{$what}_total", self::HELP[$what], ['type' => $this->known($type)], $by);
    }

    private function move(string $type, int $by): void
    {
        $known = $this->known($type);
        self::$inFlight[$known] = (self::$inFlight[$known] ?? 0) + $by;
        Native\setGauge('weft_bus_in_flight', 'Messages being handled or acknowledged.', ['type' => $known], (float) self::$inFlight[$known]);
    }

    private function known(string $type): string
    {
        return $this->codec->ofType($type) === null ? self::OTHER : $type;
    }
}
