<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos;

use Weft\Bench\Chaos\Work\Transfer;

/** How each command of a run goes, drawn with `mt_rand`: the seed decides. */
final class Manners
{
    /** Messages per thousand that fail once or are delayed; poison and crashes are absolute numbers. */
    private const STUMBLES = 20;
    private const LATER = 20;
    private const POISON = 5;
    private const CRASHES = 1;

    /** @param array<int, string> $byNumber */
    private function __construct(public readonly array $byNumber)
    {
    }

    public static function draw(int $messages): self
    {
        $manners = [];
        for ($number = 0; $number < $messages; ++$number) {
            $dice = mt_rand(0, 999);
            $manners[$number] = match (true) {
                $dice < self::STUMBLES => Transfer::STUMBLE,
                $dice < self::STUMBLES + self::LATER => Transfer::LATER,
                default => Transfer::WELL,
            };
        }
        for ($i = 0; $i < self::POISON + self::CRASHES; ++$i) {
            $manners[mt_rand(0, $messages - 1)] = $i < self::POISON ? Transfer::POISON : Transfer::CRASH;
        }

        return new self($manners);
    }

    /** How many can only be dead-lettered. */
    public function hopeless(): int
    {
        return count(array_filter($this->byNumber, static fn (string $manner): bool => $manner === Transfer::POISON || $manner === Transfer::CRASH));
    }

    /** How many must have their effects in the end. */
    public function good(): int
    {
        return count($this->byNumber) - $this->hopeless();
    }
}
