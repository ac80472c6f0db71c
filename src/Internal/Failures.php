<?php

declare(strict_types=1);

namespace Weft\Internal;

use Weft\Amqp;
use Weft\Grpc;
use Weft\Http;
use Weft\InvalidDsnError;
use Weft\Pool;
use Weft\Pool\Internal\Thrown;
use Weft\Protobuf;
use Weft\Runtime;
use Weft\Sql;
use Weft\UsageError;
use Weft\Workers;

/**
 * Turns the failures of the extension into exceptions. The extension calls it.
 *
 * @internal
 */
final class Failures
{
    /** @param array<string, string|int|float|null> $details */
    public static function exception(string $kind, string $message, array $details): \Throwable
    {
        return Origin::place(self::ofKind($kind, $message, $details));
    }

    /** @param array<string, string|int|float|null> $details */
    private static function ofKind(string $kind, string $message, array $details): \Throwable
    {
        return match ($kind) {
            'panic' => new \Error($message),
            'usage' => new UsageError($message),
            'dsn' => new InvalidDsnError($message),
            'runtime' => new Runtime\EventLoopException($message),
            'supervisor' => new Workers\SupervisorException($message),
            'forked' => new Runtime\ForkedProcessError($message, (int) ($details['parent'] ?? 0), (int) ($details['child'] ?? 0)),

            'sql.connect.refused' => new Sql\ConnectionRefusedException($message),
            'sql.connect.timeout' => new Sql\ConnectionTimeoutException($message),
            'sql.connect.authentication' => new Sql\AuthenticationException($message),
            'sql.connect.database' => new Sql\DatabaseNotFoundException($message),
            'sql.connect.file' => new Sql\FileNotOpenedException($message),
            'sql.connect.tls' => new Sql\TlsException($message),
            'sql.connect.dns' => new Sql\HostNotFoundException($message),
            'sql.connect.protocol' => new Sql\ConnectionException($message),
            'sql.connection_lost' => new Sql\ConnectionLostException($message, self::text($details, 'sqlState')),
            'sql.outcome_unknown' => new Sql\TransactionOutcomeUnknownException($message),
            'sql.server' => self::server($message, $details),
            'sql.server.repeatable' => self::server($message, $details, Sql\TransactionAbortedException::class),
            'sql.parameter' => new Sql\InvalidParameterException($message, statement: self::text($details, 'statement'), item: self::item($details), givenAt: self::text($details, 'givenAt')),
            'sql.pool_slow' => new Sql\ConnectionNotReadyException($message),
            'sql.server_down' => new Sql\ServerDownException($message),
            'sql.hook' => new Sql\HookException($message, previous: Thrown::by((int) ($details['error'] ?? 0))),
            'sql.cancelled' => new Sql\StatementCancelledException($message, statement: self::text($details, 'statement')),

            'pool.exhausted' => new Pool\PoolExhaustedException($message),
            'pool.slow' => new Pool\ResourceNotReadyException($message, Thrown::by((int) ($details['error'] ?? 0))),
            'pool.blocked' => new Pool\NestedBorrowException($message),
            'pool.closed' => new Pool\PoolClosedException($message),
            'pool.create' => new Pool\FactoryException($message, Thrown::by((int) ($details['error'] ?? 0))),
            'pool.down' => new Pool\FactoryDownException($message, Thrown::by((int) ($details['error'] ?? 0))),

            'amqp.connect.refused' => new Amqp\ConnectionRefusedException($message),
            'amqp.connect.timeout' => new Amqp\ConnectionTimeoutException($message),
            'amqp.connect.authentication' => new Amqp\AuthenticationException($message),
            'amqp.connect.virtual_host' => new Amqp\VirtualHostNotFoundException($message),
            'amqp.connect.tls' => new Amqp\TlsException($message),
            'amqp.connect.dns' => new Amqp\HostNotFoundException($message),
            'amqp.connect.protocol' => new Amqp\ConnectionException($message),
            'amqp.connection_lost' => new Amqp\ConnectionLostException($message),
            'amqp.closed' => new Amqp\ConnectionClosedException($message),
            'amqp.refused' => new Amqp\BrokerException($message, (int) ($details['code'] ?? 0)),
            'amqp.unroutable' => new Amqp\MessageReturnedException($message, (int) ($details['code'] ?? 0)),
            'amqp.not_accepted' => new Amqp\MessageNackedException($message),
            'amqp.consumer_cancelled' => new Amqp\ConsumerCancelledException($message),
            'amqp.full' => new Amqp\PublisherFullException($message),

            'protobuf.decode' => new Protobuf\DecodingException($message, isTooLarge: isset($details['isTooLarge'])),
            'protobuf.encode' => new Protobuf\EncodingException($message),
            'protobuf.schema' => new Protobuf\InvalidSchemaException($message),

            'http.address' => new Http\InvalidAddressError($message),
            'http.listen' => new Http\ListenException($message),
            'http.tls' => new Http\TlsException($message),
            'http.upgrade' => self::upgrade($message, (int) ($details['status'] ?? 400)),
            'http.body.too_large' => new Http\PayloadTooLargeException($message),
            'http.body.timed_out' => new Http\BodyTimeoutException($message),
            'http.body.incomplete', 'http.gone' => new Http\ClientDisconnectedException($message),
            'http.file.missing' => new Http\NotFoundException(previous: Origin::place(new Http\UnreadableFileException($message))),
            'http.file.unreadable' => new Http\UnreadableFileException($message),
            'http.form' => new Http\BadRequestException($message),
            'http.form.kind' => new Http\HttpException(415, $message),
            'http.upload' => new Http\UploadException($message),

            'grpc.status' => new Grpc\StatusException(Grpc\Status::from((int) ($details['code'] ?? 2)), $message),
            'grpc.tls' => new Grpc\Client\TlsException($message),
            'grpc.service' => new Grpc\InvalidServiceError($message),
            'grpc.closed' => new Grpc\CallEndedException($message),

            default => new \Error("{$message} (unknown failure kind \"{$kind}\")"),
        };
    }

    private static function upgrade(string $message, int $status): Http\HttpException
    {
        // RFC 6455 §4.4: the supported version. RFC 9110 §7.8: a field Upgrade needs the connection option; HTTP/2 has neither.
        $headers = $status === 426 ? ['connection' => 'upgrade', 'upgrade' => 'websocket', 'sec-websocket-version' => '13'] : [];

        return new Http\HttpException($status, $message, $headers);
    }

    /**
     * @param array<string, string|int|float|null> $details
     * @param class-string<Sql\SqlException>|null $class the default is that of the SQLSTATE
     */
    private static function server(string $message, array $details, ?string $class = null): Sql\SqlException
    {
        $state = self::text($details, 'sqlState') ?? '';
        $class ??= self::exact($state) ?? self::general($state);

        return new $class($message, $state, self::text($details, 'statement'), self::text($details, 'constraint'), item: self::item($details), givenAt: self::text($details, 'givenAt'), code: (int) ($details['code'] ?? 0));
    }

    /** @return class-string<Sql\SqlException>|null */
    private static function exact(string $state): ?string
    {
        return match ($state) {
            '23505' => Sql\UniqueViolationException::class,
            '23503' => Sql\ForeignKeyViolationException::class,
            '23502' => Sql\NotNullViolationException::class,
            '23514' => Sql\CheckViolationException::class,
            '40P01' => Sql\DeadlockException::class,
            '40001' => Sql\SerializationFailureException::class,
            '55P03' => Sql\LockNotAvailableException::class,
            '42601' => Sql\SyntaxErrorException::class,
            '42P01' => Sql\UndefinedTableException::class,
            '42703' => Sql\UndefinedColumnException::class,
            '42501' => Sql\InsufficientPrivilegeException::class,
            '57014' => Sql\StatementCancelledException::class,
            '57P01', '57P02', '57P03' => Sql\ConnectionLostException::class,
            default => null,
        };
    }

    /** @return class-string<Sql\SqlException> by the SQLSTATE's class, its first two characters */
    private static function general(string $state): string
    {
        return match (\substr($state, 0, 2)) {
            '08' => Sql\ConnectionLostException::class,
            '22' => Sql\DataException::class,
            '23' => Sql\ConstraintViolationException::class,
            '40' => Sql\TransactionAbortedException::class,
            '42' => Sql\InvalidStatementException::class,
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
