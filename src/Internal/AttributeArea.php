<?php

declare(strict_types=1);

namespace Weft\Internal;

use Weft\Bus\Batch;
use Weft\Bus\CommandHandler;
use Weft\Bus\Encrypted;
use Weft\Bus\EventListener;
use Weft\Bus\Expires;
use Weft\Bus\FairBy;
use Weft\Bus\MessageType;
use Weft\Bus\OrderedBy;
use Weft\Bus\Priority;
use Weft\Bus\QueryHandler;
use Weft\Bus\RateLimit;
use Weft\Bus\Retry;
use Weft\Bus\Route;
use Weft\Bus\Saga\Saga;
use Weft\Bus\Saga\SagaListener;
use Weft\Bus\Saga\SagaStart;
use Weft\Bus\Saga\SagaTimeout;
use Weft\Bus\SerializedBy;
use Weft\Bus\Timeout;
use Weft\Bus\Upcaster;
use Weft\EventSourcing\AggregateRoot;
use Weft\EventSourcing\Applies;
use Weft\Http\Body;
use Weft\Http\Header;
use Weft\Http\Path;
use Weft\Http\Query;
use Weft\Http\Status;
use Weft\Validation\Validate;

/**
 * A part of Weft that reads attributes of its own.
 *
 * @internal
 */
enum AttributeArea
{
    case Bus;
    case EventSourcing;
    case Http;

    /** @return list<class-string> those of every area */
    public static function all(): array
    {
        return \array_merge(...\array_map(static fn(self $area): array => $area->attributes(), self::cases()));
    }

    /** @return list<class-string> */
    public function attributes(): array
    {
        return match ($this) {
            self::Bus => [
                Batch::class, CommandHandler::class, Encrypted::class, EventListener::class, Expires::class, FairBy::class, MessageType::class,
                OrderedBy::class, Priority::class, QueryHandler::class, RateLimit::class, Retry::class, Route::class, Saga::class,
                SagaListener::class, SagaStart::class, SagaTimeout::class, SerializedBy::class, Timeout::class, Upcaster::class, Validate::class,
            ],
            self::EventSourcing => [AggregateRoot::class, Applies::class],
            self::Http => [Body::class, Header::class, Path::class, Query::class, Status::class, Validate::class],
        };
    }
}
