<?php

declare(strict_types=1);

namespace Weft\Testing;

use PHPUnit\Framework\AssertionFailedError;
use PHPUnit\Framework\IncompleteTest;
use PHPUnit\Framework\SkippedTest;
use Weft\Internal\LoadedExtension;
use Weft\Runtime\TimeoutException;
use Weft\Sql\Database;
use Weft\Testing\Internal\PhpUnit;
use Weft\UsageError;

use function Weft\run;
use function Weft\timeout;

/**
 * Runs a scenario repeatedly with different seeds. The seed determines which faults occur, when, and in which order messages are
 * delivered. A failure reports the seed, and `WEFT_SEED=… phpunit …` reproduces exactly that run.
 */
final class Simulation
{
    /**
     * @param \Closure(TestBus): void $scenario receives a new bus for each run
     * @param int<1, max>             $runs
     * @param int|null                $seed     of the first run; the next runs increment it. Null for the environment variable
     *                                          WEFT_SEED, which allows one run only, or else a random seed
     * @param float                   $deadline seconds of real time that a run may take
     * @param (\Closure(): Database)|null $database creates an empty database for each run, which is closed after it; null for SQLite in memory
     *
     * @throws AssertionFailedError|SimulationException the failure of a run, with its seed
     * @throws UsageError PHPUnit is not installed
     */
    public static function run(\Closure $scenario, int $runs = 1, Faults $faults = new Faults(), ?int $seed = null, float $deadline = 60.0, ?\Closure $database = null): void
    {
        if ($runs < 1) {
            throw new \ValueError("A simulation must have at least 1 run, got {$runs}");
        }
        // Not failures of a run.
        LoadedExtension::require();
        PhpUnit::require();
        $given = \getenv('WEFT_SEED');
        if (\is_string($given) && $given !== '') {
            [$seed, $runs] = [self::number($given), 1];
        }
        $seed ??= \random_int(1, 1 << 40);
        for ($run = 1; $run <= $runs; $run++, $seed++) {
            try {
                self::once($scenario, $faults, $seed, $deadline, $database);
            } catch (SkippedTest | IncompleteTest $outcome) {
                throw $outcome;
            } catch (\Throwable $thrown) {
                throw self::failure($thrown, $seed, $run, $runs);
            }
        }
    }

    private static function once(\Closure $scenario, Faults $faults, int $seed, float $deadline, ?\Closure $database): void
    {
        run(static function () use ($scenario, $faults, $seed, $deadline, $database): void {
            $made = $database === null ? null : $database();
            try {
                $bus = new TestBus($faults, $seed, $made);
                try {
                    timeout($deadline, static fn(): mixed => $scenario($bus));
                } finally {
                    $bus->close();
                }
            } finally {
                $made?->close();
            }
        });
    }

    private static function failure(\Throwable $thrown, int $seed, int $run, int $runs): \Throwable
    {
        $problem = $thrown instanceof TimeoutException ? "The scenario did not finish: {$thrown->getMessage()}" : $thrown->getMessage();
        $message = "{$problem}\n\nRun {$run} of {$runs} failed with seed {$seed}. Reproduce it with WEFT_SEED={$seed}";

        return $thrown instanceof AssertionFailedError
            ? new AssertionFailedError($message, 0, $thrown)
            : new SimulationException($thrown::class . ": {$message}", 0, $thrown);
    }

    private static function number(string $given): int
    {
        return \preg_match('/^-?\d{1,18}$/', $given) === 1 ? (int) $given : throw new \ValueError("WEFT_SEED must be a number, got \"{$given}\"");
    }
}
