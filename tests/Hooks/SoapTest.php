<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Weft\Tests\Hooks\Support\Module;
use Weft\Tests\InTask;
use Weft\Tests\Runtime\Subprocess;

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

    /** Two calls, each with an encoding of its own, and one that waits for Weft. waits() has what the two do. */
    private const CALLS = <<<'PHP'
        final class Client extends SoapClient {
            public function __construct(private string $name, private Closure $wait, array $options = []) {
                parent::__construct(null, ['location' => 'http://localhost/', 'uri' => 'urn:test', ...$options]);
            }
            public function __doRequest(string $request, string $location, string $action, int $version, bool $oneWay = false, ?string $uriParserClass = null): ?string {
                echo "$this->name begins\n";
                ($this->wait)();
                echo "$this->name ends\n";
                return '<E:Envelope xmlns:E="http://schemas.xmlsoap.org/soap/envelope/" xmlns:i="http://www.w3.org/2001/XMLSchema-instance" xmlns:t="urn:test">'
                    . '<E:Body><t:r><return i:type="t:thing"><a>é</a></return></t:r></E:Body></E:Envelope>';
            }
        }
        run(function () {
            [$wait, $end] = waits();
            $first = new Client('first', $wait);
            $second = new Client('second', $end, ['encoding' => 'ISO-8859-1']);
            [$one, $two] = Weft\all([fn() => $first->__soapCall('thing', [])->a, fn() => $second->__soapCall('thing', [])->a]);
            echo bin2hex($one), ' ', bin2hex($two), "\n";
            try {
                (new Client('third', fn() => delay(0.001)))->__soapCall('thing', []);
            } catch (Error $error) {
                echo $error->getMessage(), "\n";
            }
        });
        PHP;

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

    public function testCallsOverlapWhereTheVariablesOfTheModuleAreKnown(): void
    {
        $program = Subprocess::run(self::CALLS . <<<'PHP'
            function waits(): array {
                $second = new Weft\Runtime\Channel();
                return [fn() => $second->receive(), function () use ($second) { usleep(1_000); $second->send(null); }];
            }
            PHP, extensions: ['dom', 'soap']);

        self::assertSame("first begins\nsecond begins\nsecond ends\nfirst ends\nc3a9 e9\nthird begins\nthird ends\n", $program->output, $program->errors);
        self::assertSame('', $program->errors);
    }

    public function testCallsBlockWhereTheVariablesOfTheModuleAreInAnotherOrder(): void
    {
        $module = Module::compile('soap-layout');
        try {
            $program = Subprocess::run(self::CALLS . <<<'PHP'
                function waits(): array { return [fn() => usleep(1_000), fn() => usleep(1_000)]; }
                PHP, extensions: ['dom', 'soap'], options: ["extension=$module->file"]);
        } finally {
            $module->remove();
        }

        self::assertStringStartsWith("first begins\nfirst ends\nsecond begins\nsecond ends\nc3a9 e9\nthird begins\nThis code cannot wait: ", $program->output, $program->errors);
        self::assertStringContainsString('SoapClient', $program->output);
        self::assertSame('', $program->errors);
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
