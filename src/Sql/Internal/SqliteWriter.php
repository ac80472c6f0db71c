<?php

declare(strict_types=1);

namespace Weft\Sql\Internal;

use Weft\Sql\Transaction;
use Weft\UsageError;

/**
 * The one writer of an SQLite database: which transaction of this process holds it.
 *
 * A transaction holds the writer from its first answer to its end, and other writes wait. One of the same task would wait for a transaction that cannot
 * end meanwhile, so it is refused. All objects of one file share an instance.
 *
 * @internal
 */
final class SqliteWriter
{
    /** White space, comments and a byte order mark before the first word of a statement. */
    private const START = '/^(?:[\s;]|\xEF\xBB\xBF|' . Comment::SQLITE . ')*+';

    /** Strings, quoted names and comments, in which words are not keywords. */
    private const QUOTED = '/\'[^\']*+\'|"[^"]*+"|`[^`]*+`|\[[^\]]*+\]|' . Comment::SQLITE . '/s';

    /** Characters of a statement that the error shows. */
    private const EXCERPT = 200;

    /** @var array<string, \WeakReference<self>> by path */
    private static array $files = [];

    /** @var \WeakReference<Transaction>|null */
    private ?\WeakReference $holder = null;

    /** The task of the holder. */
    private int $task = 0;

    private function __construct(private readonly string $database, private readonly bool $readsToo)
    {
    }

    /** @param string $path of the file, or `:memory:`, whose reads need the writer too and which no other object shares */
    public static function of(string $path, string $database): self
    {
        if ($path === ':memory:') {
            return new self($database, readsToo: true);
        }
        self::$files = \array_filter(self::$files, static fn (\WeakReference $writer): bool => $writer->get() !== null);
        $file = \realpath($path) ?: $path;
        $writer = (self::$files[$file] ?? null)?->get() ?? new self($database, readsToo: false);
        self::$files[$file] = \WeakReference::create($writer);

        return $writer;
    }

    /** A statement of the transaction was answered. */
    public function holdFor(Transaction $transaction, int $task): void
    {
        $this->holder = \WeakReference::create($transaction);
        $this->task = $task;
    }

    /**
     * @throws UsageError for a statement that needs the writer while another transaction of the task holds it
     */
    public function refuseStatement(int $task, string $sql): void
    {
        if ($this->holder !== null && $this->isHeldIn($task, null) && ($this->readsToo || self::writes($sql))) {
            throw $this->refusal('the statement', \sprintf(' [statement: %s]', \mb_strimwidth($sql, 0, self::EXCERPT, '…')));
        }
    }

    /**
     * @throws UsageError for a transaction that would begin while another one of the task holds the writer
     */
    public function refuseTransaction(int $task, Transaction $transaction): void
    {
        if ($this->holder !== null && $this->isHeldIn($task, $transaction)) {
            throw $this->refusal('a second transaction', '');
        }
    }

    /** @param Transaction|null $transaction one that may hold it */
    private function isHeldIn(int $task, ?Transaction $transaction): bool
    {
        $holder = $this->holder?->get();
        if ($holder === null || !$holder->isOpen()) {
            $this->holder = null;

            return false;
        }

        return $holder !== $transaction && $this->task === $task;
    }

    private function refusal(string $what, string $statement): UsageError
    {
        return new UsageError("Database \"{$this->database}\": $what cannot run while a transaction of the same task is open. SQLite has one writer, and that transaction holds it until its end: "
            . "use the Transaction for what belongs to it, or end it first$statement");
    }

    private static function writes(string $sql): bool
    {
        if (\preg_match(self::START . '(?:SELECT|VALUES|EXPLAIN)\b/is', $sql) === 1) {
            return false;
        }
        if (\preg_match(self::START . 'WITH\b/is', $sql) !== 1) {
            return true;
        }
        // The verb stands behind the parentheses of the common table expressions.
        $outer = (string) \preg_replace('/\((?:[^()]++|(?R))*+\)/', '()', (string) \preg_replace(self::QUOTED, ' x ', $sql));

        return \preg_match('/\b(?:SELECT|VALUES|((?:INSERT|REPLACE)\s+(?:INTO|OR)|UPDATE|DELETE\s+FROM))\b/i', $outer, $verb) === 1 && isset($verb[1]);
    }
}
