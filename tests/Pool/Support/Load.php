<?php

declare(strict_types=1);

namespace Weft\Tests\Pool\Support;

use Weft\Runtime\Task;
use Weft\Sql\Database;

use function Weft\async;
use function Weft\delay;

/** Tasks that run one short statement after the other and go on whatever happens. */
final class Load
{
    public int $done = 0;
    public int $mostConnecting = 0;
    private bool $busy = true;
    /** @var array<class-string, int> */
    private array $errors = [];
    /** @var list<Task> */
    private array $tasks = [];

    public function __construct(private readonly Database $db, int $borrowers)
    {
        for ($i = 0; $i < $borrowers; $i++) {
            $this->tasks[] = async($this->work(...));
        }
        $this->tasks[] = async($this->watch(...));
    }

    /** Statements a second, over the next `$seconds`. */
    public function rate(float $seconds): float
    {
        [$done, $begin] = [$this->done, \hrtime(true)];
        delay($seconds);

        return ($this->done - $done) / ((\hrtime(true) - $begin) / 1e9);
    }

    /** @return array<class-string, int> how many of each there were since the last {@see forget()} */
    public function errors(): array
    {
        return $this->errors;
    }

    public function forget(): void
    {
        $this->errors = [];
    }

    public function stop(): void
    {
        $this->busy = false;
        foreach ($this->tasks as $task) {
            $task->await();
        }
    }

    private function work(): void
    {
        while ($this->busy) {
            try {
                $this->db->execute('SELECT 1');
                $this->done++;
            } catch (\Weft\Sql\SqlException $failure) {
                $this->errors[$failure::class] = ($this->errors[$failure::class] ?? 0) + 1;
                delay(0.01);
            }
        }
    }

    private function watch(): void
    {
        while ($this->busy) {
            $this->mostConnecting = \max($this->mostConnecting, $this->db->stats()['connecting']);
            delay(0.002);
        }
    }
}
