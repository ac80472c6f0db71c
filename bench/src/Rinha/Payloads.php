<?php

declare(strict_types=1);

namespace Weft\Bench\Rinha;

use Random\Engine\Mt19937;
use Random\Randomizer;

/**
 * The people that are sent, distributed as in the original load: what is wrong with some of them (a month 13, a nickname that is
 * too long, a stack that is no list) is as frequent as there. The same seed makes the same people, so that the number of those
 * that have to be stored is known beforehand.
 */
final class Payloads
{
    private const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
    private const SKILLS = [
        'PHP', 'Rust', 'Go', 'Java', 'Kotlin', 'Scala', 'C', 'C++', 'C#', 'Python', 'Ruby', 'Perl', 'Elixir', 'Erlang', 'Haskell',
        'OCaml', 'Lua', 'JavaScript', 'TypeScript', 'Swift', 'Zig', 'SQL', 'PostgreSQL', 'RabbitMQ', 'Linux',
    ];

    private readonly Randomizer $random;
    private bool $valid = true;

    public function __construct(int $seed)
    {
        $this->random = new Randomizer(new Mt19937($seed));
    }

    /**
     * @return array{string, string|null} the JSON, and the nickname when the person is valid
     */
    public function next(): array
    {
        $this->valid = true;
        $nickname = $this->text(self::LETTERS, 32, 35);
        $person = [
            'apelido' => $nickname,
            'nome' => $this->text(self::LETTERS . '    ', 100, 120),
            'nascimento' => $this->birthday(),
            'stack' => $this->stack(),
        ];

        return [json_encode($person, JSON_THROW_ON_ERROR), $this->valid ? $nickname : null];
    }

    /** A term to search for: 1 to 50 letters and spaces, most of which match nobody. */
    public function term(): string
    {
        return $this->string(self::LETTERS . '    ', $this->random->getInt(1, 50));
    }

    private function text(string $alphabet, int $most, int $tooMany): string
    {
        return $this->happens(99) ? $this->invalid($this->string($alphabet, $tooMany)) : $this->string($alphabet, $this->random->getInt(1, $most));
    }

    private function birthday(): string
    {
        if ($this->happens(99)) {
            return $this->invalid($this->string(self::LETTERS . '"\\-0123456789', $this->random->getInt(1, 20)));
        }
        [$year, $month, $day] = [$this->random->getInt(1940, 2020), $this->random->getInt(1, 13), $this->random->getInt(1, 29)];
        $date = sprintf('%04d-%02d-%02d', $year, $month, $day);

        return checkdate($month, $day, $year) ? $date : $this->invalid($date);
    }

    /** @return list<string>|string|int|null */
    private function stack(): array|string|int|null
    {
        if ($this->happens(99)) {
            return $this->invalid([[$this->string(self::LETTERS, 40)], 'PHP', 1][$this->random->getInt(0, 2)]);
        }
        if ($this->happens(14)) {
            return null;
        }
        $skill = fn (): string => self::SKILLS[$this->random->getInt(0, count(self::SKILLS) - 1)];

        return array_map($skill, range(1, $this->random->getInt(1, 26)));
    }

    private function string(string $alphabet, int $length): string
    {
        $string = '';
        for ($i = 0; $i < $length; ++$i) {
            $string .= $alphabet[$this->random->getInt(0, strlen($alphabet) - 1)];
        }

        return $string;
    }

    private function happens(int $oneIn): bool
    {
        return $this->random->getInt(1, $oneIn) === 1;
    }

    private function invalid(mixed $value): mixed
    {
        $this->valid = false;

        return $value;
    }
}
