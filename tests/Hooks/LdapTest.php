<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Weft\Runtime\TimeoutException;
use Weft\Tests\Hooks\Support\Gathering;
use Weft\Tests\Hooks\Support\Slapd;
use Weft\Tests\Http\Certificates;
use Weft\Tests\InTask;

use function Weft\all;
use function Weft\timeout;

/**
 * Searches of ext/ldap wait side by side, in a server that is answered by a task of the same process.
 *
 * @requires extension ldap
 */
#[RequiresPhpExtension('ldap')]
final class LdapTest extends TestCase
{
    use InTask;

    private const TASKS = 10;

    private static ?Certificates $certificates = null;
    private static ?Slapd $server = null;

    public static function setUpBeforeClass(): void
    {
        Slapd::isInstalled() || self::markTestSkipped('slapd is not installed');
        self::$certificates = new Certificates();
        self::$certificates->issue('server', 'localhost');
        self::$server = new Slapd(self::$certificates);
        // libldap replaces the name of this machine by its full one, which the certificate does not have.
        \ldap_set_option(null, \LDAP_OPT_X_TLS_REQUIRE_CERT, \LDAP_OPT_X_TLS_NEVER);
    }

    public static function tearDownAfterClass(): void
    {
        self::$server = null;
        self::$certificates?->remove();
        self::$certificates = null;
    }

    /** @return iterable<string, array{bool}> */
    public static function connections(): iterable
    {
        yield 'plain' => [false];
        yield 'STARTTLS' => [true];
    }

    /** @dataProvider connections */
    #[DataProvider('connections')]
    public function testSearchesWaitSideBySide(bool $isEncrypted): void
    {
        $gathering = new Gathering(self::TASKS);
        $answers = self::server()->answerSearches($gathering);

        self::assertSame(
            \array_fill(0, self::TASKS, 'ok'),
            \array_values(all(\array_fill(0, self::TASKS, static fn(): string => self::search(self::connect($isEncrypted))))),
        );
        self::assertSame(self::TASKS, $gathering->count);
        $answers->cancel();
    }

    public function testASearchThatTimesOutBreaksItsConnection(): void
    {
        $answers = self::server()->answerSearches(new Gathering(2));
        $connection = self::connect(false);
        \ldap_bind($connection);
        try {
            timeout(0.05, static fn(): string => self::search($connection));
            self::fail('it found something');
        } catch (TimeoutException) {
        }

        self::assertFalse(@\ldap_read($connection, 'dc=weft', '(objectClass=*)'));
        self::assertSame(-1, \ldap_errno($connection), \ldap_error($connection));
        // The second search: the first one is still in the server.
        self::assertSame('ok', self::search(self::connect(false)));
        $answers->cancel();
    }

    private static function server(): Slapd
    {
        return self::$server ?? self::fail('slapd does not run');
    }

    private static function connect(bool $isEncrypted): \LDAP\Connection
    {
        $connection = \ldap_connect('ldap://localhost:' . self::server()->port) ?: self::fail('no connection');
        \ldap_set_option($connection, \LDAP_OPT_PROTOCOL_VERSION, 3);
        if ($isEncrypted) {
            self::assertTrue(\ldap_start_tls($connection), \ldap_error($connection));
        }

        return $connection;
    }

    private static function search(\LDAP\Connection $connection): string
    {
        $found = \ldap_search($connection, 'dc=weft', '(objectClass=*)');
        self::assertInstanceOf(\LDAP\Result::class, $found, \ldap_error($connection));

        return (string) (\ldap_get_entries($connection, $found) ?: [])[0]['cn'][0];
    }
}
