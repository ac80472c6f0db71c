<?php

declare(strict_types=1);

namespace Weft\Bench\Rinha;

/** The two input files of the load, and the expected database contents after a part of them was sent. */
final class Data
{
    private const SEED = 20230825;
    private const PAYLOADS = 100_000;
    private const TERMS = 5_000;

    /** @param list<string|null> $nicknames of each payload, null where it is invalid */
    private function __construct(public readonly string $payloads, public readonly string $terms, private readonly array $nicknames)
    {
    }

    /** @param string $directory where the files are written */
    public static function write(string $directory): self
    {
        $source = new Payloads(self::SEED);
        $lines = ['payload'];
        $nicknames = [];
        for ($i = 0; $i < self::PAYLOADS; ++$i) {
            [$lines[], $nicknames[]] = $source->next();
        }
        file_put_contents("$directory/payloads.tsv", implode("\n", $lines) . "\n");
        $terms = array_map(static fn (): string => $source->term(), range(1, self::TERMS));
        file_put_contents("$directory/terms.tsv", "t\n" . implode("\n", $terms) . "\n");

        return new self("$directory/payloads.tsv", "$directory/terms.tsv", $nicknames);
    }

    /** @param int $sent how many of the payloads were sent, from the first on; the last is followed by the first again */
    public function expectedPeople(int $sent): int
    {
        $valid = array_filter(array_slice($this->nicknames, 0, $sent), static fn (?string $nickname): bool => $nickname !== null);

        return count(array_unique($valid));
    }
}
