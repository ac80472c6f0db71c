<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Weft\Tests\InTask;

use function Weft\all;
use function Weft\delay;

/**
 * ext/soap keeps what a call works with in global variables: the encoding, the classes of results, whether errors become exceptions.
 *
 * @requires extension soap
 */
#[RequiresPhpExtension('soap')]
final class SoapTest extends TestCase
{
    use InTask;

    public function testCallsThatOverlapKeepTheirOptions(): void
    {
        $calls = [];
        foreach ([[0.01, []], [0.005, ['encoding' => 'ISO-8859-1']], [0.02, []], [0.015, ['encoding' => 'ISO-8859-1']]] as [$seconds, $options]) {
            $client = self::client($seconds, $options);
            $calls[] = static fn(): string => $client->__soapCall('thing', [])->a;
        }

        self::assertSame(['é', "\xE9", 'é', "\xE9"], all($calls));
    }

    public function testAWarningOfAnotherTaskIsNoExceptionOfTheCall(): void
    {
        $client = self::client(0.02);
        $warnings = [];
        set_error_handler(static function (int $level, string $message) use (&$warnings): bool {
            $warnings[] = $message;

            return true;
        });
        try {
            [$result] = all([
                static fn(): mixed => $client->__soapCall('thing', []),
                static function (): void {
                    delay(0.005);
                    trigger_error('mine', E_USER_WARNING);
                },
            ]);
        } finally {
            restore_error_handler();
        }

        self::assertSame(['mine'], $warnings);
        self::assertInstanceOf(\stdClass::class, $result);
    }

    /** @param array<string, mixed> $options */
    private static function client(float $seconds, array $options = []): \SoapClient
    {
        $client = new class (null, ['location' => 'http://localhost/', 'uri' => 'urn:test', ...$options]) extends \SoapClient {
            public float $seconds;

            public function __doRequest(string $request, string $location, string $action, int $version, bool $oneWay = false, ?string $uriParserClass = null): ?string
            {
                delay($this->seconds);

                return '<E:Envelope xmlns:E="http://schemas.xmlsoap.org/soap/envelope/" xmlns:i="http://www.w3.org/2001/XMLSchema-instance" xmlns:t="urn:test">'
                    . '<E:Body><t:r><return i:type="t:thing"><a>é</a></return></t:r></E:Body></E:Envelope>';
            }
        };
        $client->seconds = $seconds;

        return $client;
    }
}
