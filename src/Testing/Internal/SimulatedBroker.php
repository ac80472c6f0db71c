<?php

declare(strict_types=1);

namespace Weft\Testing\Internal;

use Random\Engine\Xoshiro256StarStar;
use Random\Randomizer;
use Weft\Bus\Internal\Memory\FaultInjector;
use Weft\Bus\Transport\Outgoing;
use Weft\Testing\Faults;

/**
 * Records what is published and injects faults with a seeded random generator.
 *
 * @internal
 */
final class SimulatedBroker implements FaultInjector
{
    /** @var list<Outgoing> in the order in which they left */
    public array $published = [];

    private readonly Randomizer $dice;

    public function __construct(
        public readonly int $seed,
        private readonly Faults $faults,
    ) {
        $this->dice = new Randomizer(new Xoshiro256StarStar(\hash('sha256', (string) $seed, true)));
    }

    public function published(Outgoing $message): int
    {
        $this->published[] = $message;

        return $this->falls($this->faults->duplicate) ? 2 : 1;
    }

    public function next(int $ready): int
    {
        return $this->falls($this->faults->reorder) ? \max(0, $this->dice->getInt(0, $ready - 1)) : 0;
    }

    public function crashes(): bool
    {
        return $this->falls($this->faults->crash);
    }

    /** From 0 to 1. */
    public function chance(): float
    {
        return $this->dice->getInt(0, 1 << 30) / (1 << 30);
    }

    private function falls(float $probability): bool
    {
        return $probability > 0.0 && $this->chance() < $probability;
    }
}
