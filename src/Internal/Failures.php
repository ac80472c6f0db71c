<?php

declare(strict_types=1);

namespace Weft\Internal;

use Weft\Amqp;
use Weft\Grpc;
use Weft\Http;
use Weft\Pool;
use Weft\Pool\Internal\Thrown;
use Weft\Protobuf;
use Weft\Runtime;
use Weft\Sql;
use Weft\Workers;

/**
 * The one place where a failure of the extension becomes an exception. Called by the extension.
 *
 * @internal
 */
final class Failures
{
    /** @param array<string, string|int|float|null> $details */
    public static function exception(string $kind, string $message, array $details): \Throwable
    {
        return match ($kind) {
            'panic', 'usage' => new \Error($message),
            'runtime' => new Runtime\RuntimeFailed($message),
            'supervisor' => new Workers\SupervisorFailed($message),
            'forked' => new Runtime\ForkedProcess($message, (int) ($details['parent'] ?? 0), (int) ($details['child'] ?? 0)),

            'sql.dsn' => new Sql\InvalidDsn($message),
            'sql.usage' => new Sql\UsageError($message),
            'sql.connect.refused' => new Sql\ConnectionRefused($message),
            'sql.connect.timeout' => new Sql\ConnectionTimedOut($message),
            'sql.connect.authentication' => new Sql\AuthenticationFailed($message),
            'sql.connect.database' => new Sql\DatabaseNotFound($message),
            'sql.connect.file' => new Sql\FileNotOpened($message),
            'sql.connect.tls' => new Sql\TlsFailed($message),
            'sql.connect.dns' => new Sql\HostNotFound($message),
            'sql.connect.protocol' => new Sql\ConnectionFailed($message),
            'sql.connection_lost' => new Sql\ConnectionLost($message),
            'sql.outcome_unknown' => new Sql\TransactionOutcomeUnknown($message),
            'sql.server' => self::server($message, $details),
            'sql.parameter' => new Sql\ParameterError($message, statement: self::text($details, 'statement'), item: self::item($details), givenAt: self::text($details, 'givenAt')),
            'sql.pool_exhausted' => new Sql\PoolExhausted($message),
            'sql.pool_slow' => new Sql\ConnectionNotReady($message),
            'sql.pool_blocked' => new Sql\NestedBorrow($message),
            'sql.server_down' => new Sql\ServerDown($message),
            'sql.hook' => new Sql\HookFailed($message, previous: Thrown::by((int) ($details['error'] ?? 0))),
            'sql.pool_closed' => new Sql\PoolClosed($message),
            'sql.cancelled' => new Sql\StatementCancelled($message, statement: self::text($details, 'statement')),

            'pool.usage' => new Pool\UsageError($message),
            'pool.exhausted' => new Pool\PoolExhausted($message),
            'pool.slow' => new Pool\ResourceNotReady($message, Thrown::by((int) ($details['error'] ?? 0))),
            'pool.blocked' => new Pool\NestedBorrow($message),
            'pool.closed' => new Pool\PoolClosed($message),
            'pool.create' => new Pool\FactoryFailed($message, Thrown::by((int) ($details['error'] ?? 0))),
            'pool.down' => new Pool\FactoryDown($message, Thrown::by((int) ($details['error'] ?? 0))),

            'amqp.dsn' => new Amqp\InvalidDsn($message),
            'amqp.usage' => new Amqp\UsageError($message),
            'amqp.connect.refused' => new Amqp\ConnectionRefused($message),
            'amqp.connect.timeout' => new Amqp\ConnectionTimedOut($message),
            'amqp.connect.authentication' => new Amqp\AuthenticationFailed($message),
            'amqp.connect.virtual_host' => new Amqp\VirtualHostNotFound($message),
            'amqp.connect.tls' => new Amqp\TlsFailed($message),
            'amqp.connect.dns' => new Amqp\HostNotFound($message),
            'amqp.connect.protocol' => new Amqp\ConnectionFailed($message),
            'amqp.connection_lost' => new Amqp\ConnectionLost($message),
            'amqp.closed' => new Amqp\ConnectionClosed($message),
            'amqp.refused' => new Amqp\Refused($message, (int) ($details['code'] ?? 0)),
            'amqp.unroutable' => new Amqp\Unroutable($message, (int) ($details['code'] ?? 0)),
            'amqp.not_accepted' => new Amqp\NotAccepted($message),
            'amqp.consumer_cancelled' => new Amqp\ConsumerCancelled($message),
            'amqp.full' => new Amqp\PublisherFull($message),

            'protobuf.decode' => new Protobuf\DecodingFailed($message),
            'protobuf.encode' => new Protobuf\EncodingFailed($message),
            'protobuf.schema' => new Protobuf\InvalidSchema($message),

            'http.address' => new Http\InvalidAddress($message),
            'http.listen' => new Http\ListenFailed($message),
            'http.tls' => new Http\TlsFailed($message),
            'http.upgrade' => self::upgrade($message, (int) ($details['status'] ?? 400)),
            'http.body.too_large' => new Http\PayloadTooLarge($message),
            'http.body.timed_out' => new Http\BodyTimedOut($message),
            'http.body.incomplete', 'http.gone' => new Http\ClientGone($message),
            'http.file.missing' => new Http\NotFound(previous: new Http\FileUnreadable($message)),
            'http.file.unreadable' => new Http\FileUnreadable($message),
            'http.form' => new Http\BadRequest($message),
            'http.form.kind' => new Http\HttpException(415, $message),
            'http.upload' => new Http\UploadFailed($message),

            'grpc.status' => new Grpc\StatusException(Grpc\Status::from((int) ($details['code'] ?? 2)), $message),
            'grpc.tls' => new Grpc\Client\TlsFailed($message),
            'grpc.service' => new Grpc\InvalidService($message),
            'grpc.closed' => new Grpc\CallEnded($message),

            default => new \Error("{$message} (unknown failure kind \"{$kind}\")"),
        };
    }

    private static function upgrade(string $message, int $status): Http\HttpException
    {
        // RFC 6455 §4.4: what the client could try instead.
        $headers = $status === 426 ? ['upgrade' => 'websocket', 'sec-websocket-version' => '13'] : [];

        return new Http\HttpException($status, $message, $headers);
    }

    /** @param array<string, string|int|float|null> $details */
    private static function server(string $message, array $details): Sql\SqlException
    {
        $state = self::text($details, 'sqlState') ?? '';
        $class = self::exact($state) ?? self::general($state);

        return new $class($message, $state, self::text($details, 'statement'), self::text($details, 'constraint'), item: self::item($details), givenAt: self::text($details, 'givenAt'));
    }

    /** @return class-string<Sql\SqlException>|null */
    private static function exact(string $state): ?string
    {
        return match ($state) {
            '23505' => Sql\UniqueViolation::class,
            '23503' => Sql\ForeignKeyViolation::class,
            '23502' => Sql\NotNullViolation::class,
            '23514' => Sql\CheckViolation::class,
            '40P01' => Sql\Deadlock::class,
            '40001' => Sql\SerializationFailure::class,
            '55P03' => Sql\LockNotAvailable::class,
            '42601' => Sql\SyntaxError::class,
            '42P01' => Sql\UndefinedTable::class,
            '42703' => Sql\UndefinedColumn::class,
            '42501' => Sql\InsufficientPrivilege::class,
            '57014' => Sql\StatementCancelled::class,
            '57P01', '57P02', '57P03' => Sql\ConnectionLost::class,
            default => null,
        };
    }

    /** @return class-string<Sql\SqlException> by the SQLSTATE's class, its first two characters */
    private static function general(string $state): string
    {
        return match (\substr($state, 0, 2)) {
            '08' => Sql\ConnectionLost::class,
            '22' => Sql\DataException::class,
            '23' => Sql\ConstraintViolation::class,
            '40' => Sql\TransactionAborted::class,
            '42' => Sql\InvalidStatement::class,
            default => Sql\SqlException::class,
        };
    }

    /** @param array<string, string|int|float|null> $details */
    private static function item(array $details): ?int
    {
        return isset($details['item']) ? (int) $details['item'] : null;
    }

    /** @param array<string, string|int|float|null> $details */
    private static function text(array $details, string $name): ?string
    {
        return isset($details[$name]) ? (string) $details[$name] : null;
    }
}
