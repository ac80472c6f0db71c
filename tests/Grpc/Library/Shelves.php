<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc\Library;

use Weft\Grpc\Call;
use Weft\Grpc\Status;
use Weft\Grpc\StatusException;
use Weft\Protobuf\Json;
use Weft\Tests\Grpc\Library\Generated\Author;
use Weft\Tests\Grpc\Library\Generated\Book;
use Weft\Tests\Grpc\Library\Generated\CreateBookRequest;
use Weft\Tests\Grpc\Library\Generated\GetBookRequest;
use Weft\Tests\Grpc\Library\Generated\LendBookRequest;
use Weft\Tests\Grpc\Library\Generated\Library;
use Weft\Tests\Grpc\Library\Generated\ListBooksRequest;
use Weft\Tests\Grpc\Library\Generated\SearchRequest;
use Weft\Tests\Grpc\Library\Generated\SearchResponse;
use Weft\Tests\Grpc\Library\Generated\UpdateBookRequest;

use function Weft\delay;

/** Answers with what it was asked, so that one sees what arrived. */
final class Shelves implements Library
{
    public function getBook(GetBookRequest $request, Call $call): Book
    {
        if ($request->name === 'lost') {
            throw new StatusException(Status::NotFound, 'the book "lost" is lost', [new Author('Ada', 'L')], ['x-reason' => 'lost']);
        }
        if ($request->name === 'slow') {
            delay(30.0);
        }
        if ($request->name === 'broken') {
            throw new \LogicException('a secret');
        }
        $call->begin(['x-first' => 'a']);
        $call->trailer('x-last', 'b');

        return new Book($request->name, $call->method() . ' ' . $call->value('authorization'), \PHP_INT_MAX);
    }

    public function getNewestBook(GetBookRequest $request, Call $call): Book
    {
        return new Book('newest');
    }

    public function listBooks(ListBooksRequest $request, Call $call): iterable
    {
        for ($i = 1; $i <= $request->limit; $i++) {
            yield new Book("$request->shelf/$i");
        }
        if ($request->shelf === 'torn') {
            throw new StatusException(Status::DataLoss, 'the rest is torn');
        }
    }

    public function createBook(CreateBookRequest $request, Call $call): Book
    {
        return new Book("shelves/$request->shelf/books/1", $request->book?->title . ($request->draft ? ' (draft)' : ''), $request->book->pages ?? 0, $request->book?->author);
    }

    public function updateBook(UpdateBookRequest $request, Call $call): Book
    {
        $request->book->author = new Author(Json::encode($request));

        return $request->book;
    }

    public function lendBook(LendBookRequest $request, Call $call): Book
    {
        return new Book((string) $request->name, "lent to $request->reader");
    }

    public function search(SearchRequest $request, Call $call): SearchResponse
    {
        return new SearchResponse([new Book(title: Json::encode($request)), new Book('second')]);
    }

    public function import(iterable $requests, Call $call): SearchResponse
    {
        return new SearchResponse(\iterator_to_array($requests, false));
    }

    public function visitBook(GetBookRequest $request, Call $call): Book
    {
        return new Book($request->name, 'visited');
    }

    public function inside(GetBookRequest $request, Call $call): Book
    {
        return new Book('inside');
    }
}
