<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\TestCase;
use Symfony\Component\Mailer\Transport\Smtp\EsmtpTransport;
use Symfony\Component\Mailer\Transport\Smtp\Stream\SocketStream;
use Symfony\Component\Mime\Email;
use Weft\Tests\Http\Certificates;
use Weft\Tests\InTask;
use Weft\Tests\Program;

use function Weft\all;

/**
 * Symfony's Mailer sends by SMTP, and turns to TLS in the middle of its connections. The server is another process: the Mailer says goodbye in a
 * destructor, which blocks before PHP 8.4.
 */
final class MailTest extends TestCase
{
    use InTask;

    private const TASKS = 10;

    private Certificates $certificates;

    protected function setUp(): void
    {
        $library = '/usr/share/php/Symfony/Component/Mailer/autoload.php';
        \is_file($library) ? require_once $library : self::markTestSkipped('symfony/mailer is not installed');
        $this->certificates = new Certificates();
        $this->certificates->issue('server', 'localhost');
    }

    protected function tearDown(): void
    {
        isset($this->certificates) && $this->certificates->remove();
    }

    public function testMailsAreSentSideBySideOnConnectionsThatTurnToTls(): void
    {
        $directory = $this->certificates->directory;
        $tls = \is_file(\ini_get('extension_dir') . '/openssl.so') ? ['-d', 'extension=openssl'] : [];
        $server = Program::launch([...$tls, __DIR__ . '/Support/mail-server.php', $directory, (string) self::TASKS]);
        $port = (int) \substr((string) \strrchr($server->address, ':'), 1);

        all(\array_map(static fn(int $number): \Closure => static function () use ($directory, $port, $number): void {
            $transport = new EsmtpTransport('localhost', $port, false);
            $stream = $transport->getStream();
            \assert($stream instanceof SocketStream);
            $stream->setStreamOptions(['ssl' => ['cafile' => "$directory/ca.crt"]]);
            $transport->send((new Email())->from('app@example.org')->to('ada@example.org')->subject('Hello')->text("mail $number"));
        }, \range(1, self::TASKS)));
        $mails = \explode("\n", \trim($server->output()));
        \sort($mails, \SORT_NATURAL);

        self::assertSame(\array_map(static fn(int $number): string => "mail $number", \range(1, self::TASKS)), $mails);
    }
}
