<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bus\ConsumeOptions;
use Weft\Tests\Bus\Fixtures\Deposit;
use Weft\Tests\Bus\Fixtures\StoreCustomer;
use Weft\Tests\Bus\Fixtures\TemporaryDatabase;
use Weft\Tests\Bus\Saga\Fixtures\OrderCancelled;
use Weft\Tests\Bus\Saga\Fixtures\OrderPlaced;

use function Weft\run;

require_once __DIR__ . '/../Bus/Fixtures/messages.php';
require_once __DIR__ . '/../Bus/Fixtures/ordered.php';
require_once __DIR__ . '/../Bus/Saga/Fixtures/checkout.php';

/** `weft consume`, `queues`, `setup` and `dead:*`, each a process of its own. */
final class BusCommandsTest extends TestCase
{
    use TemporaryDatabase;

    private const BUS = __DIR__ . '/Fixtures/bus.php';

    protected function setUp(): void
    {
        \putenv("WEFT_TEST_FILE={$this->directory}/cli.db");
    }

    protected function tearDown(): void
    {
        \putenv('WEFT_TEST_FILE');
        \putenv('WEFT_LOG_LEVEL');
    }

    public function testSetupSaysWhatItMakesAndMakesItOnce(): void
    {
        $dry = $this->weft('setup', self::BUS, 'customers', '--dry-run');
        self::assertStringContainsString("queue customers\nqueue customers.dead\n", $dry);
        self::assertStringContainsString('table weft_inbox', $dry);
        self::assertStringContainsString('table weft_inbox', $this->weft('setup', self::BUS, 'customers', '--dry-run'), 'the first made nothing');
        $this->weft('setup', self::BUS, 'customers');

        self::assertStringNotContainsString('table', $this->weft('setup', self::BUS, 'customers'));
    }

    public function testAQueueIsPausedAndResumed(): void
    {
        $this->send(['a']);
        self::assertSame("paused\n", $this->weft('queues:pause', self::BUS, 'customers'));
        self::assertMatchesRegularExpression('/customers +\| 1 +\| 0 +\| 0 +\| 0 +\| yes /', $this->weft('queues', self::BUS, 'customers'));
        self::assertSame("0 succeeded, 0 retried later, 0 dead-lettered, 0 duplicates\n", $this->weft('consume', self::BUS, 'customers', '--stop-when-empty'));
        self::assertSame("resumed\n", $this->weft('queues:resume', self::BUS, 'customers'));
        self::assertSame("1 succeeded, 0 retried later, 0 dead-lettered, 0 duplicates\n", $this->weft('consume', self::BUS, 'customers', '--stop-when-empty'));
        $again = Weft::run(['queues:resume', self::BUS, 'customers']);
        self::assertSame([1, '', "The queue customers is not paused.\n"], [$again->exitCode, $again->output, $again->errors]);
    }

    public function testHandlersShowsWhatAppliesToEachHandler(): void
    {
        $shown = $this->weft('handlers', self::BUS);

        self::assertMatchesRegularExpression('/ message +\| handler +\| retries +\| timeout +\| transaction /', $shown);
        self::assertMatchesRegularExpression('/ command Weft.+StoreCustomer +\| class@anonymous::store +\| 3 immediate \+ 5 delayed +\| none +\| yes /', $shown);
    }

    public function testConsumeHandlesWhatIsThereAndQueuesShowsWhatIsLeft(): void
    {
        $this->send(['a', 'b', 'nobody', 'c', 'd']);
        self::assertMatchesRegularExpression('/customers +\| 5 +\| 0 /', $this->weft('queues', self::BUS, 'customers'));
        self::assertSame("4 succeeded, 0 retried later, 1 dead-lettered, 0 duplicates\n", $this->weft('consume', self::BUS, 'customers', '--stop-when-empty'));

        $shown = $this->weft('queues', self::BUS, 'customers');
        self::assertMatchesRegularExpression('/customers +\| 0 +\| 1 /', $shown);
        self::assertStringContainsString("outbox: 0\ndelayed: 0\n", $shown);
    }

    /** @dataProvider commandsThatLoadABus */
    #[DataProvider('commandsThatLoadABus')]
    public function testAnApplicationGivenInPlaceOfItsBusIsNotRun(string $command): void
    {
        $file = "{$this->directory}/app.php";
        $autoload = \var_export(\dirname(__DIR__, 2) . '/autoload.php', true);
        \file_put_contents($file, "<?php require {$autoload}; \$app = new Weft\\App(); \$app->metrics('127.0.0.1:1'); \$app->onStart(static function () { echo 'it runs'; exit(9); }); \$app->run();");

        $weft = Weft::run([...\explode(' ', $command), $file, ...($command === 'dead:list' ? ['customers'] : [])]);

        self::assertSame([1, ''], [$weft->exitCode, $weft->output], $weft->errors);
        // Symfony's block breaks lines where the terminal ends.
        self::assertStringContainsString('app.phprunsaWeft\App:givethefilethatreturnsitsbus.', (string) \preg_replace('/\s+/', '', $weft->errors));
    }

    public static function commandsThatLoadABus(): iterable
    {
        yield 'handlers' => ['handlers'];
        yield 'dead:list' => ['dead:list'];
        yield 'setup' => ['setup --check'];
    }

    /** @dataProvider badDurations */
    #[DataProvider('badDurations')]
    public function testADurationThatIsNoneIsRefusedWithTheOptionAndItsValue(string $duration): void
    {
        // A consumer that accepts it ends at once.
        $weft = Weft::run(['consume', self::BUS, 'customers', '--stop-when-empty', "--stop-after={$duration}"]);

        self::assertNotSame(0, $weft->exitCode, $weft->output);
        self::assertStringContainsString("--stop-after is \"{$duration}\": it must be a number of seconds, above 0", (string) \preg_replace('/\s+/', ' ', $weft->errors));
    }

    public static function badDurations(): iterable
    {
        yield 'with a unit' => ['1h'];
        yield 'no number' => ['soon'];
        yield 'nothing' => ['0'];
        yield 'negative' => ['-1'];
    }

    /**
     * @dataProvider numbersOutOfBounds
     *
     * @param list<string> $command and its arguments after the file
     */
    #[DataProvider('numbersOutOfBounds')]
    public function testANumberOutOfItsBoundsIsRefusedWithTheOptionItsValueAndTheBound(array $command, string $complaint): void
    {
        $weft = Weft::run([$command[0], self::BUS, ...\array_slice($command, 1)]);

        self::assertSame(2, $weft->exitCode, $weft->output);
        // The console breaks lines, within words too.
        self::assertStringContainsString(\str_replace(' ', '', $complaint), (string) \preg_replace('/\s+/', '', $weft->errors));
        self::assertStringNotContainsString('Stack trace', $weft->errors);
    }

    /** @return iterable<string, array{list<string>, string}> */
    public static function numbersOutOfBounds(): iterable
    {
        $consume = ['consume', 'customers', '--stop-when-empty'];
        yield 'seconds' => [[...$consume, '--stop-after=1000000001'], '--stop-after is "1000000001": it must be a number of seconds, above 0 and at most 1000000000'];
        yield 'seconds that no float has' => [[...$consume, '--stop-after=1' . \str_repeat('0', 320)], 'above 0 and at most 1000000000'];
        yield 'concurrency' => [[...$consume, '--concurrency=9223372036854775807'], '--concurrency is "9223372036854775807": it must be at most 1000000'];
        yield 'concurrency that no integer has' => [[...$consume, '--concurrency=9223372036854775808'], '--concurrency is "9223372036854775808": it must be at most 1000000'];
        yield 'no concurrency' => [[...$consume, '--concurrency=0'], '--concurrency is "0": it must be an integer of at least 1'];
        yield 'prefetch' => [[...$consume, '--prefetch=1000001'], '--prefetch is "1000001": it must be at most 1000000'];
        yield 'limit' => [['dead:list', 'customers', '--limit=9223372036854775808'], '--limit is "9223372036854775808": it must be at most 9223372036854775807'];
        yield 'no limit' => [['dead:retry', 'customers', '--all', '--limit=-1'], '--limit is "-1": it must be an integer of at least 1'];
        yield 'limit of sagas' => [['sagas:list', 'Checkout', '--limit=ten'], '--limit is "ten": it must be an integer of at least 1'];
        yield 'rate' => [['dead:retry', 'customers', '--all', '--rate=0'], '--rate is "0": it must be a number above 0'];
        foreach (['id', 'type', 'error', 'handler'] as $criterion) {
            yield "empty {$criterion}" => [['dead:list', 'customers', "--{$criterion}="], "--{$criterion} is empty"];
        }
        yield 'empty type to retry' => [['dead:retry', 'customers', '--type='], '--type is empty'];
        yield 'empty error to delete' => [['dead:delete', 'customers', '--error='], '--error is empty'];
        yield 'empty id to show' => [['dead:show', 'customers', ''], 'The id of a dead letter is empty.'];
        foreach (['queues', 'queues:pause', 'consume', 'setup', 'dead:list', 'keys'] as $command) {
            yield "{$command} of an empty name" => [[$command, ''], 'A queue name must have 1 to 250 bytes'];
        }
        yield 'saga that is none' => [['sagas:reopen', 'nosaga', '7'], 'No saga nosaga is registered with this bus; registered are checkout'];
        yield 'rate with a unit' => [['dead:retry', 'customers', '--all', '--rate=5/s'], '--rate is "5/s": it must be a number above 0'];
    }

    public function testAFailureThatHasANameIsOneLineAndVerboseTellsWhereItCameFrom(): void
    {
        $weft = Weft::run(['queues', self::BUS, 'nowhere']);
        self::assertSame([1, ''], [$weft->exitCode, $weft->output]);
        self::assertMatchesRegularExpression('/^weft: Queue "nowhere" is not declared in \S+cli\.db\nHelp: weft explain bus-undefined-queue\n$/', $weft->errors);
        $weft = Weft::run(['dead:list', self::BUS, 'nowhere']);
        self::assertMatchesRegularExpression('/^weft: Queue "nowhere" has no queue of dead letters; is its name misspelt\? Queue "nowhere\.dead" is not declared in \S+cli\.db\n/', $weft->errors);

        self::assertStringContainsString('Exception trace:', Weft::run(['queues', self::BUS, 'nowhere', '-v'])->errors);
    }

    public function testAMistakeInTheFileIsOneLineWithItsPlace(): void
    {
        $file = "{$this->directory}/h.php";
        $autoload = \var_export(\dirname(__DIR__, 2) . '/autoload.php', true);
        \file_put_contents($file, "<?php\nrequire {$autoload};\nfinal class Handles\n{\n    #[Weft\\Bus\\CommandHandler] public function h(\\ArrayObject \$c): void {}\n}\nreturn Weft\\Bus\\Bus::connect('memory:')->handlers(new Handles());\n");

        $weft = Weft::run(['handlers', $file]);

        self::assertSame([1, ''], [$weft->exitCode, $weft->output]);
        self::assertSame("weft: Class ArrayObject cannot be a message: it is an internal class of PHP\nAt: {$file}:7\nHelp: weft explain bus-invalid-message-class\n", $weft->errors);
        self::assertStringContainsString('Exception trace:', Weft::run(['handlers', $file, '-v'])->errors);
    }

    public function testDeadLettersAreListedShownEditedAndRetriedUnderTheirOldIds(): void
    {
        $ids = $this->send(['nobody', 'a', 'nobody']);
        $this->weft('consume', self::BUS, 'customers', '--stop-when-empty');

        $list = $this->weft('dead:list', self::BUS, 'customers');
        self::assertStringContainsString("{$ids[0]}  ", $list);
        self::assertStringContainsString('DomainException: customers have names (1 attempts)', $list);
        self::assertStringEndsWith("2 of 2 dead letters\n", $list);
        self::assertStringContainsString('0 of 2', $this->weft('dead:list', self::BUS, 'customers', '--error=LengthException'));
        $show = $this->weft('dead:show', self::BUS, 'customers', $ids[2]);
        self::assertStringContainsString('"name":"nobody"', $show);
        self::assertStringContainsString('weft-error-stack: ', $show);

        \file_put_contents("{$this->directory}/body", '{"id":"2","name":"somebody","email":"e"}');
        self::assertStringContainsString('+ {"id":"2","name":"somebody"', $this->weft('dead:edit', self::BUS, 'customers', $ids[2], "--body={$this->directory}/body"));
        self::assertStringContainsString('2 would be retried', $this->weft('dead:retry', self::BUS, 'customers', '--error=DomainException', '--dry-run'));
        self::assertStringContainsString('2 of 2', $this->weft('dead:list', self::BUS, 'customers'), 'a dry run leaves them');
        self::assertSame("2 retried\n", $this->weft('dead:retry', self::BUS, 'customers', '--handler=::store', '--rate=100'));
        self::assertSame("1 succeeded, 0 retried later, 1 dead-lettered, 0 duplicates\n", $this->weft('consume', self::BUS, 'customers', '--stop-when-empty'));

        self::assertStringContainsString("{$ids[0]}  ", $this->weft('dead:list', self::BUS, 'customers'));
        self::assertStringContainsString('(2 attempts)', $this->weft('dead:list', self::BUS, 'customers'));
        foreach ([['dead:retry'], ['dead:retry', '--dry-run'], ['dead:delete'], ['dead:delete', '--dry-run']] as $command) {
            $weft = Weft::run([\array_shift($command), self::BUS, 'customers', '--id=nope', ...$command]);
            self::assertSame([1, '', "No dead letter of queue customers has the id nope.\n"], [$weft->exitCode, $weft->output, $weft->errors]);
        }
        self::assertStringContainsString('has the id nope and fits --type and --handler.', Weft::run(['dead:retry', self::BUS, 'customers', '--id=nope', '--type=a', '--handler=b'])->errors);
        self::assertSame("0 deleted\n", $this->weft('dead:delete', self::BUS, 'customers', '--type=Unknown'));
        self::assertSame("1 deleted\n", $this->weft('dead:delete', self::BUS, 'customers', '--all'));
        self::assertSame("0 of 0 dead letters\n", $this->weft('dead:list', self::BUS, 'customers'));
    }

    /** @dataProvider bodiesThatAreNone */
    #[DataProvider('bodiesThatAreNone')]
    public function testADeadLetterKeepsItsBodyIfTheNewOneIsNone(array $options, string $complaint): void
    {
        [$id] = $this->send(['nobody']);
        $this->weft('consume', self::BUS, 'customers', '--stop-when-empty');
        $body = $this->weft('dead:show', self::BUS, 'customers', $id, '--raw');

        $weft = Weft::run(['dead:edit', self::BUS, 'customers', $id, ...$options]);

        self::assertSame([2, ''], [$weft->exitCode, $weft->output]);
        self::assertStringContainsString($complaint, (string) \preg_replace('/\s+/', ' ', $weft->errors));
        self::assertSame($body, $this->weft('dead:show', self::BUS, 'customers', $id, '--raw'));
    }

    /** @return iterable<string, array{list<string>, string}> */
    public static function bodiesThatAreNone(): iterable
    {
        yield 'standard input without a body' => [[], 'The new body is empty: standard input has none; give a file with --body.'];
        yield 'an empty file' => [['--body=/dev/null'], 'The new body is empty: /dev/null is.'];
        yield 'a directory' => [['--body=/tmp'], 'Cannot read /tmp: it is a directory.'];
        yield 'no file' => [['--body=/nonexistent'], 'Cannot read /nonexistent.'];
    }

    public function testKeysOfAQueueThatIsNotDeclaredAreRefused(): void
    {
        $weft = Weft::run(['keys', self::BUS, 'nowhere']);

        self::assertSame([1, ''], [$weft->exitCode, $weft->output]);
        self::assertStringStartsWith('weft: Queue "nowhere" is not declared', $weft->errors);
    }

    public function testControlCharactersInDeadLettersAndSagasAreEscaped(): void
    {
        $evil = "x\x1b[2J\r\u{9b}31m\u{202e}<error>y";
        $shown = 'x\x1B[2J\r\u{009B}31m\u{202E}<error>y';
        \putenv('WEFT_LOG_LEVEL=emergency');
        $id = run(static function () use ($evil): string {
            $bus = (require self::BUS)();
            $bus->queue('customers')->declare();
            $id = $bus->send(new StoreCustomer('1', 'error', $evil));
            $bus->publish(new OrderPlaced($evil));
            $bus->consume('customers', concurrency: 1, options: new ConsumeOptions(stopWhenEmpty: true));
            $bus->close();

            return $id;
        });
        \file_put_contents("{$this->directory}/body", $evil);

        $outputs = [
            $this->weft('dead:edit', self::BUS, 'customers', $id, "--body={$this->directory}/body"),
            $this->weft('dead:list', self::BUS, 'customers'),
            $this->weft('dead:show', self::BUS, 'customers', $id),
            $this->weft('sagas:list', self::BUS),
            $this->weft('sagas:show', self::BUS, 'checkout', $evil),
            Weft::run(['dead:show', self::BUS, 'customers', $evil])->errors,
            Weft::run(['sagas:show', self::BUS, 'checkout', $evil . $evil])->errors,
        ];

        foreach ($outputs as $output) {
            self::assertStringContainsString($shown, $output);
            self::assertSame(0, \preg_match('/[\x1b\r\x{9b}\x{202e}]/u', $output), $output);
        }
        self::assertSame($evil, $this->weft('dead:show', self::BUS, 'customers', $id, '--raw'));
        self::assertStringNotContainsString("\x1b", Weft::run(['queues', self::BUS, $evil])->errors);
        self::assertStringNotContainsString("\x1b[2J", Weft::run(['queues', "/tmp/$evil"])->errors);
    }

    public function testControlCharactersInKeysAndHandlersAreEscaped(): void
    {
        $evil = "x\x1b[2J\r\u{9b}31m\u{202e}<error>y";
        $shown = 'x\x1B[2J\r\u{009B}31m\u{202E}<error>y';
        \putenv('WEFT_LOG_LEVEL=emergency');
        $file = __DIR__ . '/Fixtures/ordered.php';
        run(static function () use ($file, $evil): void {
            $bus = (require $file)();
            $bus->queue('accounts')->declare();
            $bus->sendAll([new Deposit($evil, 1), new Deposit($evil, 2)]);
            $bus->consume('accounts', concurrency: 1, options: new ConsumeOptions(stopWhenEmpty: true));
            $bus->close();
        });
        // PHP takes every byte from 0x80 on in the name of a class: this one has the bidirectional override.
        $handlers = "{$this->directory}/handlers.php";
        $autoload = \var_export(\dirname(__DIR__, 2) . '/autoload.php', true);
        \file_put_contents($handlers, "<?php\nrequire {$autoload};\nfinal class Pay\u{202e}\u{9b}Command {}\nreturn Weft\\Bus\\Bus::connect('memory:')->handlers(new class {\n    #[Weft\\Bus\\CommandHandler] public function pay\u{202e}(Pay\u{202e}\u{9b}Command \$c): void {}\n});\n");

        foreach ([[$this->weft('keys', $file, 'accounts'), "account:$shown"], [$this->weft('handlers', $handlers), 'Pay\u{202E}\u{009B}Command'], [$this->weft('handlers', $handlers), '::pay\u{202E}']] as [$output, $expected]) {
            self::assertStringContainsString($expected, $output);
            self::assertSame(0, \preg_match('/[\x1b\r\x{9b}\x{202e}]/u', $output), $output);
        }
    }

    public function testSagasAreListedAndShown(): void
    {
        self::assertStringEndsWith("0 sagas\n", $this->weft('sagas:list', self::BUS));
        run(static function (): void {
            $bus = (require self::BUS)();
            $bus->queue('customers')->declare();
            $bus->publish(new OrderPlaced('7', total: 20));
            $bus->publish(new OrderPlaced('8'));
            $bus->publish(new OrderCancelled('8'));
            $bus->consume('customers', concurrency: 1, options: new ConsumeOptions(stopWhenEmpty: true));
            $bus->close();
        });

        $list = $this->weft('sagas:list', self::BUS);
        self::assertMatchesRegularExpression('/checkout +\| 7 +\| active +\| 1 /', $list);
        self::assertMatchesRegularExpression('/checkout +\| 8 +\| failed +\| 2 .*\| cancelled /', $list);
        self::assertStringEndsWith("2 sagas\n", $list);
        self::assertStringEndsWith("1 sagas\n", $this->weft('sagas:list', self::BUS, 'checkout', '--status=failed'));
        $show = $this->weft('sagas:show', self::BUS, 'checkout', '7');
        self::assertStringContainsString("status: active\nversion: 1\n", $show);
        self::assertStringContainsString("\n    \"total\": 20,\n", $show);
        self::assertSame(1, Weft::run(['sagas:show', self::BUS, 'checkout', 'nobody'])->exitCode);
        self::assertStringContainsString('--status must be one of active', Weft::run(['sagas:list', self::BUS, '--status=done'])->errors);
    }

    public function testCommandsThatChangeEveryDeadLetterRequireTheAllOption(): void
    {
        $this->send(['nobody']);
        foreach (['dead:retry', 'dead:delete'] as $command) {
            $weft = Weft::run([$command, self::BUS, 'customers']);
            self::assertSame(2, $weft->exitCode);
            self::assertStringContainsString('--all', $weft->errors);
        }
    }

    /** @dataProvider noBuses */
    #[DataProvider('noBuses')]
    public function testAFileThatReturnsNoBusIsRefused(string $code, string $returned): void
    {
        \file_put_contents("{$this->directory}/nothing.php", "<?php {$code}");
        $weft = Weft::run(['queues', "{$this->directory}/nothing.php", 'customers']);

        self::assertSame(1, $weft->exitCode);
        // The console breaks lines anywhere.
        self::assertStringContainsString("mustreturnaWeft\Bus\Busoraclosurethatmakesone,itreturned{$returned}.", (string) \preg_replace('/\s+/', '', $weft->errors));
    }

    public static function noBuses(): iterable
    {
        yield 'something else' => ['return 7;', 'int'];
        yield 'nothing' => ['', 'nothing'];
        yield 'the front controller of a framework' => ['return static fn(array $context): int => 7;', 'aclosurethattakesarguments'];
    }

    /**
     * @param list<string> $names
     * @return list<string> ids
     */
    private function send(array $names): array
    {
        return run(static function () use ($names): array {
            $bus = (require self::BUS)();
            $bus->queue('customers')->declare();
            $ids = [];
            foreach ($names as $index => $name) {
                $ids[] = $bus->send(new StoreCustomer((string) $index, $name, 'e'));
            }
            $bus->close();

            return $ids;
        });
    }

    private function weft(string ...$arguments): string
    {
        $weft = Weft::run($arguments);
        self::assertSame(0, $weft->exitCode, $weft->output . $weft->errors);

        return $weft->output;
    }
}
