<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use PHPUnit\Framework\TestCase;
use Weft\Tests\Bridge\ServesExample;
use Weft\Tests\Timing;

/** `examples/symfony` on Weft, and on PHP's own server and PHP-FPM beside it. */
final class ApplicationTest extends TestCase
{
    use ServesExample;

    public function testTheSameRequestsHaveTheSameAnswersOnWeftOnPhpsOwnServerAndOnPhpFpm(): void
    {
        $api = $this->api();
        $transcripts = $mails = [];
        foreach (self::servers() as $server => $start) {
            $this->sites[] = $site = $start($this->directory(), ['API_URL' => "http://$api->address"]);
            $transcripts[$server] = $this->transcript($site);
            $mails[$server] = \preg_match_all('/^(?:Subject|To|From): .*|^Hello .*/m', $site->mails(), $lines) > 0 ? $lines[0] : [];
        }

        self::assertStringContainsString('Zoë', \implode("\n", $transcripts['Weft']));
        self::assertStringContainsString(', welcomed', \implode("\n", $transcripts['Weft']));
        self::assertSame(["From: Shop <shop@example.org>\r", "To: zoe@example.org\r", "Subject: Welcome\r", "Hello Zo=C3=AB & Co,\r"], $mails['Weft']);
        self::assertSame($mails['PHP'], $mails['Weft']);
        self::assertSame($transcripts['PHP'], $transcripts['Weft']);
        self::assertSame($transcripts['PHP-FPM'] ?? $transcripts['PHP'], $transcripts['PHP']);
    }

    /** @return array<string, \Closure(string, array<string, string>): Site> `scripts/setup test` installs PHP-FPM */
    private static function servers(): array
    {
        return ['Weft' => Site::onWeft(...), 'PHP' => Site::onPhp(...)] + (Site::fpm() === null ? [] : ['PHP-FPM' => Site::onFpm(...)]);
    }

    public function testRequestsThatWaitAtTheSameTimeSeeTheirOwnUserRequestAndSession(): void
    {
        $api = $this->api();
        $this->sites[] = $site = Site::onWeft($this->directory(), ['API_URL' => "http://$api->address", 'WEFT_KERNELS' => '8']);
        $browsers = ['ada' => (new Browser($site->address))->logIn('ada'), 'zoe' => (new Browser($site->address))->logIn('zoe')];
        self::assertNotSame($browsers['ada']->cookies, $browsers['zoe']->cookies);

        for ($round = 0; $round < 5; ++$round) {
            $sent = [];
            foreach (\range(1, 8) as $number) {
                // The API answers when all eight are there: one after the other they would wait for ever.
                $user = $number % 2 === 0 ? 'ada' : 'zoe';
                // A session is locked: each request has one of its own.
                $browser = (new Browser($site->address))->logIn($user);
                $sent[] = [$user, "8-$round-$number", $browser, $browser->send('GET', "/quote?tag=8-$round-$number")];
            }
            foreach ($sent as [$user, $tag, $browser, $socket]) {
                $browser->receive($socket);
                self::assertSame(200, $browser->status, $browser->body . $site->log());
                self::assertSame(
                    ['quote' => "about $tag", 'before' => [$user, $tag], 'after' => [$user, $tag], 'session' => $user],
                    \json_decode($browser->body, true),
                );
            }
        }
    }

    public function testClientsWithoutACookieOrWithOneTheyMadeUpGetSessionsOfTheirOwn(): void
    {
        $this->sites[] = $site = Site::onWeft($this->directory());
        $ids = [];
        foreach (\range(1, 5) as $_) {
            $browser = new Browser($site->address);
            $ids[] = $browser->get('/login')->cookies['PHPSESSID'];
        }
        $forger = new Browser($site->address);
        $forger->cookies['PHPSESSID'] = $made = \str_repeat('a', 40);
        $ids[] = $forger->get('/login')->cookies['PHPSESSID'];

        self::assertCount(6, \array_unique($ids));
        self::assertNotContains($made, $ids);
    }

    public function testARequestThatWaitsTooLongForAKernelIsRefusedAndTheLogNamesTheHolder(): void
    {
        $api = $this->api();
        $this->sites[] = $site = Site::onWeft($this->directory(), ['API_URL' => "http://$api->address", 'WEFT_KERNELS' => '1', 'WEFT_KERNEL_WAIT' => '0.1']);
        $browser = (new Browser($site->address))->logIn('ada');
        $socket = $browser->send('GET', '/quote?tag=2-held');
        $refused = new Browser($site->address);
        Timing::until(static fn(): bool => $refused->get('/')->status === 503, 'the only kernel is held');

        self::assertSame(['1'], $refused->headers['retry-after']);
        self::assertMatchesRegularExpression('~Pool "kernels" is exhausted: 1 of 1 .* GET /quote from 127~', $site->log());
        \file_get_contents("http://$api->address/quote?tag=2-held");
        self::assertSame(200, $browser->receive($socket)->status);
    }

    /** @return list<string> what a visitor sees, without what differs from run to run */
    private function transcript(Site $site): array
    {
        $browser = new Browser($site->address);
        $lines = [];
        $note = static function (Browser $seen) use (&$lines, $site): void {
            $kept = \array_intersect_key($seen->headers, \array_flip(['content-type', 'location', 'cache-control', 'set-cookie', 'vary']));
            \ksort($kept);
            $text = \json_encode([$seen->status, $kept], \JSON_UNESCAPED_SLASHES) . "\n$seen->body";
            $text = \str_replace([$site->address, 'charset=utf-8'], ['site', 'charset=UTF-8'], $text);
            $text = (string) \preg_replace(['/(PHPSESSID=)[^;"]+/', '/(expires=)[^;"]+/', '/(token[^>]*value=")[^"]+/'], '$1…', $text);
            $lines[] = $text;
        };
        $note($browser->get('/'));
        $note($browser->get('/customers'));
        $note($browser->logIn('nobody'));
        $note($browser->get('/login'));
        $note($browser->logIn('ada'));
        $note($browser->get('/customers'));
        $note($browser->get('/customers/new'));
        $note($browser->post('/customers/new', ['customer' => ['name' => '', 'email' => 'no address', '_token' => $browser->token('customer[_token]')]]));
        $note($browser->post('/customers/new', ['customer' => ['name' => 'Zoë', 'email' => 'zoe@example.org', '_token' => 'forged']]));
        $note($browser->post('/customers/new', ['customer' => ['name' => 'Zoë', 'email' => 'zoe@example.org', '_token' => $browser->token('customer[_token]')]]));
        $note($browser->get('/customers'));
        $token = $browser->get('/customers/1')->token('customer[_token]');
        $note($browser->post('/customers/1', ['customer' => ['name' => 'Zoë & Co', 'email' => 'zoe@example.org', '_token' => $token]]));
        $site->console('weft:messenger:consume', 'jobs', '--stop-when-empty');
        $note($browser->get('/customers'));
        $note($browser->get('/customers/99'));
        $note($browser->get('/quote?tag=1-one'));
        $note($browser->post('/customers/1/delete', ['_token' => 'forged']));
        $token = $browser->get('/customers')->token('_token');
        $note($browser->post('/customers/1/delete', ['_token' => $token]));
        $note($browser->get('/customers'));
        $note($browser->get('/logout'));
        $note($browser->get('/customers'));

        return $lines;
    }
}
