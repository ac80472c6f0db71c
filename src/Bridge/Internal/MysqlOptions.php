<?php

declare(strict_types=1);

namespace Weft\Bridge\Internal;

use Weft\Pool\Hooks;
use Weft\Sql\Session;
use Weft\UsageError;

/**
 * Options of PHP's own extensions for MySQL that a configuration has, for a connection of Weft: those of TLS must not get lost.
 *
 * @internal
 */
final class MysqlOptions
{
    /** Options of PDO without a counterpart. */
    private const UNSUPPORTED = ['SSL_KEY', 'SSL_CERT', 'SSL_CAPATH', 'SSL_CIPHER'];

    private const ADVICE = 'which Weft does not support: Weft verifies the server by a file of certificates and has no client certificates';

    /**
     * @param string|null $authority file with the certificates that verify the server
     * @param bool $verifies whether a server that they do not verify is refused
     * @param bool $encrypts whether TLS is required without them
     */
    private function __construct(
        private readonly ?string $authority,
        private readonly bool $verifies,
        private readonly bool $encrypts,
        private readonly ?string $publicKey,
        public readonly ?string $initCommand,
    ) {
    }

    /**
     * @param array<array-key, mixed> $options attributes of PDO
     *
     * @throws UsageError for an option that Weft cannot honour
     */
    public static function ofPdo(array $options): self
    {
        foreach (self::UNSUPPORTED as $name) {
            self::attribute($options, $name) === null || throw new UsageError("The connection has PDO's option MYSQL_ATTR_$name, " . self::ADVICE);
        }
        $verifies = Setting::given(self::attribute($options, 'SSL_VERIFY_SERVER_CERT'));

        return new self(
            self::text(self::attribute($options, 'SSL_CA')),
            $verifies === null || Setting::boolean('PDO\'s option MYSQL_ATTR_SSL_VERIFY_SERVER_CERT', $verifies),
            false,
            self::text(self::attribute($options, 'SERVER_PUBLIC_KEY')),
            self::text(self::attribute($options, 'INIT_COMMAND')),
        );
    }

    /**
     * @param array<string, mixed> $params of DBAL's driver `mysqli`
     * @param array<array-key, mixed> $options its driver options
     *
     * @throws UsageError for a parameter that Weft cannot honour
     */
    public static function ofMysqli(array $params, array $options): self
    {
        foreach (self::UNSUPPORTED as $name) {
            $name = \strtolower($name);
            self::text($params[$name] ?? null) === null || throw new UsageError("The connection has the parameter \"$name\", " . self::ADVICE);
        }
        $flags = (int) ($options['flags'] ?? 0);
        $verifies = Setting::given(self::constant($options, 'MYSQLI_OPT_SSL_VERIFY_SERVER_CERT'));

        return new self(
            self::text($params['ssl_ca'] ?? null),
            ($flags & self::flag('MYSQLI_CLIENT_SSL_DONT_VERIFY_SERVER_CERT')) === 0
                && ($verifies === null || Setting::boolean('the option MYSQLI_OPT_SSL_VERIFY_SERVER_CERT', $verifies)),
            ($flags & self::flag('MYSQLI_CLIENT_SSL')) !== 0,
            self::text(self::constant($options, 'MYSQLI_SERVER_PUBLIC_KEY')),
            self::text(self::constant($options, 'MYSQLI_INIT_COMMAND')),
        );
    }

    /**
     * An option of PDO, under the name that the version of PHP has for it.
     *
     * @param array<array-key, mixed> $options
     */
    public static function attribute(array $options, string $name): mixed
    {
        return self::constant($options, "Pdo\\Mysql::ATTR_$name", "PDO::MYSQL_ATTR_$name");
    }

    /** @return array<string, string> options of the DSN */
    public function dsn(): array
    {
        return \array_filter([
            'sslmode' => match (true) {
                $this->authority !== null => $this->verifies ? 'verify-ca' : 'require',
                default => $this->encrypts ? 'require' : null,
            },
            'sslrootcert' => $this->authority,
            'server_public_key' => $this->publicKey,
        ], static fn(?string $value): bool => $value !== null);
    }

    /**
     * Makes the settings of each session that a pool opens.
     *
     * @param list<string> $statements
     */
    public static function hooks(array $statements): Hooks
    {
        return $statements === [] ? new Hooks() : new Hooks(created: static function (Session $session) use ($statements): void {
            foreach ($statements as $statement) {
                $session->execute($statement);
            }
        });
    }

    /** @param array<array-key, mixed> $options */
    private static function constant(array $options, string ...$names): mixed
    {
        foreach ($names as $name) {
            if (\defined($name)) {
                return $options[(int) \constant($name)] ?? null;
            }
        }

        return null;
    }

    private static function flag(string $name): int
    {
        return \defined($name) ? (int) \constant($name) : 0;
    }

    /** An empty option is one that is not set. */
    private static function text(mixed $value): ?string
    {
        return $value === null || $value === '' ? null : (string) $value;
    }
}
