<?php

declare(strict_types=1);

namespace Weft\Examples\Api;

use Weft\Http\Body;
use Weft\Http\NotFoundException;
use Weft\Http\Query;
use Weft\Http\Status;

final class Books
{
    /** @var array<int, Book> */
    private array $books = [];
    private int $lastId = 0;

    /**
     * Finds books.
     *
     * @param string $q part of the title
     * @param int $limit how many at most
     *
     * @return list<Book>
     */
    public function search(#[Query] string $q = '', #[Query] ?Genre $genre = null, #[Query] int $limit = 20): array
    {
        $fits = static fn(Book $book): bool => ($genre === null || $book->genre === $genre) && ($q === '' || \stripos($book->title, $q) !== false);

        return \array_slice(\array_values(\array_filter($this->books, $fits)), 0, $limit);
    }

    /** Adds a book. */
    #[Status(201)]
    public function add(#[Body] AddBook $book): Book
    {
        $id = ++$this->lastId;

        return $this->books[$id] = new Book($id, $book->title, $book->genre, $book->pages, $book->authors, $book->published);
    }

    /** Finds the book of an id. */
    public function find(int $id): Book
    {
        return $this->books[$id] ?? throw new NotFoundException("There is no book $id");
    }

    /** Removes a book. It is no error if there is none. */
    public function remove(int $id): void
    {
        unset($this->books[$id]);
    }
}
