<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\App;
use Weft\Bench\HttpAnswer;
use Weft\RestartPolicy;
use Weft\Tests\Extension;

require_once __DIR__ . '/../../bench/autoload.php';

/** What an application does beside serving: hooks, background tasks, health checks, and how it ends. */
final class LifecycleTest extends TestCase
{
    private const DEADLINE = 60;

    private Application $app;
    /** @var resource|null */
    private $process = null;
    /** @var resource|null */
    private $errors = null;

    protected function setUp(): void
    {
        $this->app = new Application('');
    }

    protected function tearDown(): void
    {
        if ($this->process !== null) {
            \proc_terminate($this->process, \SIGKILL);
            \proc_close($this->process);
        }
    }

    public function testHooksRunAroundEverythingElseThoseAtTheEndInReverseOrder(): void
    {
        $this->start('', <<<'PHP'
            $app->onStart(function () { delay(0.001); say('start one'); })->onStart(fn() => say('start two'))
                ->onStop(function () { delay(0.001); say('stop one'); })->onStop(fn() => throw new Exception('unlucky'))->onStop(fn() => say('stop three'))
                ->task('work', function () { say('working'); try { delay(600); } finally { say('work ends'); } });
            PHP);
        self::assertSame(['start one', 'start two', 'working'], [$this->line(), $this->line(), $this->line()]);
        \proc_terminate($this->process);
        [$code, $told] = $this->end();

        self::assertSame(0, $code, $told);
        self::assertMatchesRegularExpression('/^work ends\nstop three\n.* error +An onStop hook failed: unlucky\n.*^stop one\n$/ms', $told);
    }

    public function testAnApplicationWithNothingToDoSaysSo(): void
    {
        $this->start('', '');
        self::assertStringContainsString('warning The application has no server, queue or task: it only waits for SIGTERM', $this->line());
        \proc_terminate($this->process);

        self::assertSame([0, ''], $this->end());
    }

    /** @dataProvider busy */
    #[DataProvider('busy')]
    public function testAnApplicationThatOthersKeepBusySaysNothing(string $program): void
    {
        $this->start('', "{$program} exit(0);");
        self::assertSame('ready', $this->line());
        \proc_terminate($this->process);

        self::assertSame([0, ''], $this->end());
    }

    public static function busy(): iterable
    {
        yield 'a hook' => ['$app->onStart(static fn() => null)->run(static fn() => say("ready"));'];
        yield 'a task beside it' => ['\Weft\run(static function () use ($app) { $worker = \Weft\async(static fn() => delay(600)); $app->run(static fn() => say("ready")); $worker->cancel("done"); });'];
    }

    public function testAHookThatThrowsAtTheStartEndsTheApplicationAndWhatWasOpenedIsClosed(): void
    {
        $this->start('', "\$app->onStart(fn() => throw new DomainException('no table'))->onStop(fn() => say('stopped'))->task('work', fn() => say('never'));");
        [$code, $told] = $this->end();

        self::assertSame(255, $code);
        self::assertStringContainsString('Uncaught DomainException: no table', $told);
        self::assertStringContainsString("stopped\n", $told);
        self::assertStringNotContainsString('never', $told);
    }

    public function testHooksForTheEndRunWhenAHandlerCallsExitAndMayWait(): void
    {
        $this->start('', <<<'PHP'
            $app->onStop(function () { delay(0.01); say('stopped'); })
                ->onStop(function () { throw new DomainException('not flushed'); })
                ->onStop(function () { delay(0.01); say('told'); })
                ->task('ends', function () { delay(0.01); exit(3); });
            PHP);
        [$code, $told] = $this->end();

        self::assertSame(3, $code, $told);
        self::assertMatchesRegularExpression('~^told$.*An onStop hook failed: not flushed.*^stopped$~ms', $told);
        self::assertSame(1, \substr_count($told, 'An onStop hook failed'), $told);
    }

    public function testATaskWhoseOwnTaskFailsAfterItHasReturnedIsRestarted(): void
    {
        $this->start('', <<<'PHP'
            $calls = 0;
            $app->task('flaky', function () use (&$calls) {
                say('call ' . ++$calls);
                $calls < 2 && Weft\async(function () { delay(0.01); throw new RuntimeException('the inner task failed'); });
            }, Weft\RestartPolicy::onFailure(delay: 0.001));
            PHP);
        self::assertSame('call 1', $this->line());
        self::assertMatchesRegularExpression('/ error +Background task flaky failed and is restarted in 0\.\d+ s: the inner task failed$/', $this->line());
        while ($this->line() !== 'call 2') {
            // The stack of the failure.
        }
        \proc_terminate($this->process);
        self::assertSame([0, ''], $this->end());
    }

    public function testATaskThatOnlyReturnsAGeneratorHasFailed(): void
    {
        $this->start('', "\$follow = function () { yield; }; \$app->task('follow', fn() => \$follow(), Weft\\RestartPolicy::never());");
        [$code, $told] = $this->end();
        self::assertSame(255, $code);
        self::assertMatchesRegularExpression('/The background task "follow" \(closure at \w+\.php:\d+\) returned a generator, whose body has not run/', $told);
    }

    public function testTheFailureOfADetachedTaskIsLoggedAndTheApplicationGoesOn(): void
    {
        $this->start('', <<<'PHP'
            set_error_handler(fn() => throw new ErrorException('a warning'));
            $app->task('work', function () {
                Weft\detach(fn() => throw new RuntimeException('no audit today'))->named('audit');
                delay(0.01);
                say('goes on');
                delay(600);
            });
            PHP);
        $told = '';
        while (($line = $this->line()) !== 'goes on') {
            $told .= "$line\n";
        }
        self::assertMatchesRegularExpression('/ error +The detached task audit failed: no audit today$/m', $told);
        \proc_terminate($this->process);
        self::assertSame([0, ''], $this->end());
    }

    public function testATaskThatFailsIsRestartedAndLoggedAndOneThatReturnsIsDone(): void
    {
        $this->start('', <<<'PHP'
            $calls = 0;
            $app->task('flaky', function () use (&$calls) {
                say('call ' . ++$calls);
                $calls < 3 && throw new RuntimeException("not yet $calls");
            }, Weft\RestartPolicy::onFailure(delay: 0.001));
            PHP);
        self::assertSame('call 1', $this->line());
        self::assertMatchesRegularExpression('/ error +Background task flaky failed and is restarted in 0\.\d+ s: not yet 1$/', $this->line());
        $told = '';
        while (($line = $this->line()) !== 'call 3') {
            $told .= "$line\n";
        }
        self::assertStringContainsString('not yet 2', $told);
        \proc_terminate($this->process);
        self::assertSame([0, ''], $this->end());
    }

    public function testATaskOfPeriodicWorkRunsAgainAfterItHasReturned(): void
    {
        $this->start('', "\$app->task('poll', fn() => say('polled'), Weft\\RestartPolicy::always(delay: 0.001));");

        self::assertSame(['polled', 'polled', 'polled'], [$this->line(), $this->line(), $this->line()]);
    }

    /** @dataProvider pauses */
    #[DataProvider('pauses')]
    public function testAStopDuringThePauseBeforeARestartIsNoFailure(string $work, string $restart, string $before): void
    {
        $this->start('', "\$app->onStop(fn() => say('stopped'))->task('again', function () { {$work} }, {$restart});");
        while (!\str_contains($this->line(), $before)) {
        }
        \proc_terminate($this->process);
        [$code, $told] = $this->end();

        self::assertSame([0, "stopped\n"], [$code, $told]);
    }

    public static function pauses(): iterable
    {
        yield 'of periodic work' => ["say('called');", 'Weft\RestartPolicy::always(delay: 60.0)', 'called'];
        yield 'after a failure' => ["throw new RuntimeException('not yet');", 'Weft\RestartPolicy::onFailure(delay: 600.0, maxDelay: 600.0)', 'frames of Weft'];
    }

    public function testWorkThatReturnsInsteadOfBeingCancelledIsNotRepeated(): void
    {
        $this->start('', <<<'PHP'
            $app->task('again', function () {
                say('called');
                try {
                    delay(600);
                } catch (Weft\Runtime\CancelledException) {
                    say('returned');
                }
            }, Weft\RestartPolicy::always(delay: 0.0));
            PHP);
        self::assertSame('called', $this->line());
        \proc_terminate($this->process);

        self::assertSame([0, "returned\n"], $this->end());
    }

    /** @dataProvider ends */
    #[DataProvider('ends')]
    public function testATaskThatIsNotRestartedEndsTheApplicationWithItsFailure(string $restart, int $calls): void
    {
        $this->start('', "\$app->onStop(fn() => say('stopped'))->task('fatal', function () { say('called'); throw new DomainException('broken'); }, {$restart});");
        [$code, $told] = $this->end();

        self::assertSame(255, $code);
        self::assertSame($calls, \substr_count($told, "called\n"));
        self::assertStringContainsString('Uncaught DomainException: broken', $told);
        self::assertStringContainsString("stopped\n", $told);
    }

    public static function ends(): iterable
    {
        yield 'never' => ['Weft\RestartPolicy::never()', 1];
        yield 'after its limit' => ['Weft\RestartPolicy::onFailure(delay: 0.001, limit: 2)', 3];
    }

    public function testARequestInFlightIsAnsweredWhenABackgroundTaskFailsForGood(): void
    {
        $this->start('', <<<'PHP'
            $routes->get('/', function () { say('working'); while (!is_file(__DIR__ . '/go')) { delay(0.01); } return Response::text('done'); });
            $app->onStop(fn() => say('stopped'))
                ->task('license', function () { while (!is_file(__DIR__ . '/gone')) { delay(0.01); } throw new DomainException('the license is gone'); }, Weft\RestartPolicy::never())
                ->task('quota', function () { try { delay(600); } finally { throw new DomainException('the quota is gone'); } }, Weft\RestartPolicy::never());
            PHP, announce: true);
        $address = $this->line();
        $client = \stream_socket_client("tcp://$address");
        \fwrite($client, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        self::assertSame('working', $this->line());
        \touch("{$this->app->directory}/gone");
        self::assertStringContainsString('The background task license failed, and the application stops: the license is gone', $this->line());
        self::assertStringContainsString('The background task quota failed while the application stops: the quota is gone', $this->line());
        // It stops already.
        \proc_terminate($this->process);
        \touch("{$this->app->directory}/go");
        self::assertStringEndsWith("\r\n\r\ndone", (string) \stream_get_contents($client));
        [$code, $told] = $this->end();

        self::assertSame(255, $code);
        self::assertStringContainsString('Uncaught DomainException: the license is gone', $told);
        self::assertStringContainsString("stopped\n", $told);
    }

    public function testTheNextWorkerServesWhileOneWhoseApplicationHasFailedCompletesWhatIsInFlight(): void
    {
        $this->write('', <<<'PHP'
            $routes->get('/', function () { touch(__DIR__ . '/working'); while (!is_file(__DIR__ . '/go')) { delay(0.01); } return Response::text((string) getmypid()); });
            $routes->get('/pid', fn() => Response::text((string) getmypid()));
            $app->task('license', function () { while (!@unlink(__DIR__ . '/gone')) { delay(0.01); } throw new DomainException('the license is gone'); }, Weft\RestartPolicy::never());
            PHP);
        $run = new Supervised($this->app->file, ['--workers=1']);
        $address = \substr((string) $run->wait('listening on')['message'], \strlen('listening on '));
        $first = $run->wait('is ready')['pid'];
        $client = \stream_socket_client("tcp://$address");
        \fwrite($client, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        $deadline = \microtime(true) + self::DEADLINE;
        while (!\is_file("{$this->app->directory}/working") && \microtime(true) < $deadline) {
            \usleep(10_000);
        }
        \touch("{$this->app->directory}/gone");
        $run->wait('is started again');
        $second = $run->wait('is ready')['pid'];

        self::assertNotSame($first, $second);
        self::assertSame((string) $second, HttpAnswer::of("http://$address/pid", ['timeout' => self::DEADLINE, 'header' => 'Connection: close'])->body);
        \touch("{$this->app->directory}/go");
        self::assertStringEndsWith("\r\n\r\n$first", (string) \stream_get_contents($client));
        self::assertSame(255, $run->wait('ended with')['exit_code']);
        $run->signal(\SIGTERM);
        self::assertSame(0, $run->end());
    }

    /** @dataProvider loops */
    #[DataProvider('loops')]
    public function testATaskThatFailsForGoodEndsTheOthersWhateverTheyDoWithTheirCancellation(string $work, string $restart): void
    {
        $this->start('', <<<PHP
            \$routes->get('/', fn() => Response::text('x'));
            \$app->onStop(fn() => say('stopped'))
                ->check('cache', fn() => true, every: 0.01)
                ->task('follow', function () { {$work} }, {$restart})
                ->task('license', function () { delay(0.05); throw new DomainException('the license is gone'); }, Weft\RestartPolicy::never());
            PHP);
        [$code, $told] = $this->end();

        self::assertSame(255, $code);
        self::assertStringContainsString('Uncaught DomainException: the license is gone', $told);
        self::assertStringContainsString("stopped\n", $told);
        self::assertStringNotContainsString('restarted', $told);
    }

    public static function loops(): iterable
    {
        $loop = 'while (true) { delay(0.01); }';
        yield 'it ends with it' => [$loop, 'Weft\RestartPolicy::onFailure(delay: 0.001)'];
        yield 'it returns' => ["try { $loop } catch (Weft\Runtime\CancelledException) { return; }", 'Weft\RestartPolicy::always(delay: 0.001)'];
        yield 'it wraps it' => ["try { $loop } catch (Weft\Runtime\CancelledException \$cancelled) { throw new RuntimeException('no answer', previous: \$cancelled); }", 'Weft\RestartPolicy::onFailure(delay: 0.001)'];
    }

    public function testAnApplicationThatHasFailedIsNotReadyWhileItsTasksCleanUp(): void
    {
        $this->start('grace: 600.0', <<<'PHP'
            $app->metrics('127.0.0.1:0')
                ->check('cache', fn() => true, every: 0.01)
                ->task('follow', function () { try { delay(600); } finally { while (!is_file(__DIR__ . '/go')) { delay(0.01); } } })
                ->task('license', function () { while (!is_file(__DIR__ . '/gone')) { delay(0.01); } throw new DomainException('the license is gone'); }, Weft\RestartPolicy::never());
            PHP);
        self::assertSame(1, \preg_match('~http://(\S+)/metrics~', $this->line(), $found));
        $ready = "http://$found[1]/ready";
        $this->awaitReady($ready, 200, "1 of 1 workers are ready\n");
        \touch("{$this->app->directory}/gone");
        $this->awaitReady($ready, 503, "0 of 1 workers are ready, stopping\n");
        \touch("{$this->app->directory}/go");

        self::assertSame(255, $this->end()[0]);
    }

    public function testAWorkerWhoseApplicationHasFailedDoesNotCountAsReady(): void
    {
        $this->write('grace: 600.0', <<<'PHP'
            $app->task('follow', function () { try { delay(600); } finally { while (!is_file(__DIR__ . '/go')) { delay(0.01); } } })
                ->task('license', function () { while (!is_file(__DIR__ . '/gone')) { delay(0.01); } throw new DomainException('the license is gone'); }, Weft\RestartPolicy::never());
            PHP);
        $run = new Supervised($this->app->file, ['--workers=1', '--metrics=127.0.0.1:0']);
        $ready = "http://{$run->wait('metrics')['address']}/ready";
        $run->wait('is ready');
        $this->awaitReady($ready, 200, "1 of 1 workers are ready\n");
        \touch("{$this->app->directory}/gone");
        $this->awaitReady($ready, 503, "0 of 1 workers are ready\n");
        \unlink("{$this->app->directory}/gone");
        \touch("{$this->app->directory}/go");
        $this->awaitReady($ready, 200, "1 of 1 workers are ready\n");
        $run->signal(\SIGTERM);
        self::assertSame(0, $run->end());
    }

    public function testACheckThatWaitsForACancelledTaskFailsAndTheApplicationGoesOn(): void
    {
        $this->start('', <<<'PHP'
            $app->check('cache', function () { $probe = Weft\detach(fn() => delay(5)); $probe->cancel('no connection'); $probe->await(); }, every: 0.01)
                ->check('other', function () { static $calls = 0; ++$calls === 20 && say('goes on'); }, every: 0.01);
            PHP);
        $told = '';
        while (($line = $this->line()) !== 'goes on') {
            $told .= "$line\n";
        }
        \proc_terminate($this->process);

        self::assertSame(0, $this->end()[0]);
        self::assertStringContainsString('Health check cache fails: Task ', $told);
    }

    /** @dataProvider slow */
    #[DataProvider('slow')]
    public function testWorkThatOutlivesTheGraceIsCancelled(string $program, ?string $request): void
    {
        $this->start('grace: 0.2', $program, announce: true);
        $address = $this->line();
        $client = null;
        if ($request !== null) {
            $client = \stream_socket_client("tcp://$address");
            \fwrite($client, $request);
        }
        while ($this->line() !== 'working') {
        }
        $from = \hrtime(true);
        \proc_terminate($this->process);
        [$code, $told] = $this->end();

        self::assertSame(0, $code, $told);
        self::assertStringContainsString("cancelled\n", $told);
        self::assertGreaterThan(0.19, (\hrtime(true) - $from) / 1e9, 'it had its grace');
        $client === null || \fclose($client);
    }

    public static function slow(): iterable
    {
        $work = 'say("working"); try { delay(600); } finally { say("cancelled"); }';
        yield 'a request' => ["\$routes->get('/', function () { $work });", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"];
        yield 'the clean-up of a background task' => ["\$app->task('slow', function () { try { delay(0.001); say('working'); delay(600); } finally { try { delay(600); } finally { say('cancelled'); } } });", null];
        yield 'a handler of messages' => [<<<PHP
            final class Work {}
            final class Works { #[Weft\\Bus\\CommandHandler] public function work(Work \$work): void { $work } }
            \$bus = Weft\\Bus\\Bus::connect('memory:')->handlers(new Works());
            \$bus->queue('works')->declare();
            \$bus->send(new Work());
            \$app->consume(\$bus, 'works');
            PHP, null];
    }

    public function testAHookAtTheEndIsCancelledAfterWhatIsLeftOfTheGraceAndAtLeastASecond(): void
    {
        $this->start('grace: 0.0', "\$app->onStop(function () { say('stopping'); try { delay(600); } finally { say('cancelled'); } })->task('work', fn() => say('working'));");
        self::assertSame('working', $this->line());
        \proc_terminate($this->process);
        [$code, $told] = $this->end();

        self::assertSame(0, $code);
        self::assertMatchesRegularExpression('/^stopping\ncancelled\n.*An onStop hook failed: /s', $told);
    }

    public function testReadyNamesTheChecksThatFailAndIsGreenAgainWhenTheyPass(): void
    {
        $this->start('', <<<'PHP'
            $app->metrics('127.0.0.1:0')
                ->check('disk', fn() => is_file(__DIR__ . '/go') || throw new RuntimeException('no disk'), every: 0.01)
                ->check('quota', fn() => !is_file(__DIR__ . '/full'), every: 0.01)
                ->check('gateway', function () { is_file(__DIR__ . '/slow') && delay(600); }, every: 0.01, timeout: 0.02);
            PHP);
        self::assertSame(1, \preg_match('~http://(\S+)/metrics~', $this->line(), $found));
        $ready = "http://$found[1]/ready";

        $this->awaitReady($ready, 503, "0 of 1 workers are ready\nfailing: disk\n");
        \touch("{$this->app->directory}/go");
        $this->awaitReady($ready, 200, "1 of 1 workers are ready\n");
        \touch("{$this->app->directory}/full");
        $this->awaitReady($ready, 503, "0 of 1 workers are ready\nfailing: quota\n");
        \unlink("{$this->app->directory}/full");
        \touch("{$this->app->directory}/slow");
        $this->awaitReady($ready, 503, "0 of 1 workers are ready\nfailing: gateway\n");
        \proc_terminate($this->process);
        [$code, $told] = $this->end();

        self::assertSame(0, $code);
        self::assertStringContainsString('Health check disk fails: no disk', $told);
        self::assertStringContainsString('Health check disk passes again', $told);
        self::assertStringContainsString('Health check quota fails: it returned false', $told);
        self::assertMatchesRegularExpression('/Health check gateway fails: .*0\.02/', $told);
    }

    public function testAWorkerWhoseCheckFailsDoesNotCountAsReady(): void
    {
        $this->write('', "\$app->check('disk', fn() => is_file(__DIR__ . '/go'), every: 0.01); \$routes->get('/', fn() => Response::text(''));");
        $run = new Supervised($this->app->file, ['--workers=2', '--metrics=127.0.0.1:0']);
        $ready = "http://{$run->wait('metrics')['address']}/ready";
        $run->wait('is ready');
        $run->wait('is ready');

        $this->awaitReady($ready, 503, "0 of 2 workers are ready\nfailing: disk (worker 1)\nfailing: disk (worker 2)\n");
        \touch("{$this->app->directory}/go");
        $this->awaitReady($ready, 200, "2 of 2 workers are ready\n");
        $run->signal(\SIGTERM);
        self::assertSame(0, $run->end());
    }

    public function testTheHandlersAreLoggedAndAllOptionsOfAConsumerApply(): void
    {
        $this->start('', <<<'PHP'
            final class Pay {}
            final class Paid {}
            final class Payments
            {
                #[Weft\Bus\CommandHandler, Weft\Bus\Retry(immediate: 2, on: [LengthException::class]), Weft\Bus\Timeout(5.0)]
                public function pay(Pay $pay, Weft\Sql\Transaction $transaction): void { say('paid'); }
                #[Weft\Bus\EventListener]
                public function paid(Paid $paid): void {}
            }
            $bus = Weft\Bus\Bus::connect('memory:', Weft\Sql\Database::connect('sqlite::memory:'))->handlers(new Payments());
            $bus->queue('payments')->declare();
            $bus->send(new Pay());
            $bus->send(new Pay());
            $app->consume($bus, 'payments', 1, new Weft\Bus\ConsumeOptions(limit: 1));
            $app->task('after', function () use ($bus) {
                $queue = $bus->queue('payments');
                // The consumer may have fetched the second message, which it gives back when it ends.
                for ($tries = 0; $tries < 3000 && ($bus->admin()->stats()->commands === 0 || $queue->depth() !== 1); ++$tries) { delay(0.01); }
                say('left ' . $queue->depth());
            });
            PHP);
        $told = '';
        while (!\str_starts_with($line = $this->line(), 'left ')) {
            $told .= "$line\n";
        }
        self::assertSame('left 1', $line);
        \proc_terminate($this->process);
        self::assertSame(0, $this->end()[0]);

        $expected = [
            '/ info +command Pay: Payments::pay, queue: payments, retries: 2 immediate on LengthException, else 3 immediate \+ 5 delayed, timeout: 5 s, transaction: yes$/m',
            '/ info +event Paid: Payments::paid, queue: payments, retries: 3 immediate \+ 5 delayed, timeout: none, transaction: no$/m',
        ];
        foreach ($expected as $row) {
            self::assertMatchesRegularExpression($row, $told);
        }
        self::assertSame(1, \substr_count($told, "paid\n"));
    }

    public function testAContainerAndValuesOfTheRequestNeedNothingOfWeft(): void
    {
        $this->start('', <<<'PHP'
            final class Tenants { public function of(string $host): string { return strtoupper($host); } }
            $container = new class implements Psr\Container\ContainerInterface {
                private array $services = [];
                public function has(string $id): bool { return class_exists($id); }
                public function get(string $id): mixed { return $this->services[$id] ??= new $id(); }
            };
            $tenant = new Weft\Runtime\Local();
            $routes->use(function ($request, $next) use ($tenant, $container) {
                $tenant->set($container->get(Tenants::class)->of($request->host()));
                return $next($request);
            })->get('/', function () use ($tenant) {
                delay(0.05);
                return Response::text(all([fn() => $tenant->value()])[0]);
            });
            PHP, announce: true);
        $address = $this->line();
        $clients = [];
        foreach (['one', 'two', 'three'] as $host) {
            $clients[$host] = \stream_socket_client("tcp://$address");
            \fwrite($clients[$host], "GET / HTTP/1.1\r\nHost: $host\r\nConnection: close\r\n\r\n");
        }
        foreach ($clients as $host => $client) {
            self::assertStringEndsWith("\r\n\r\n" . \strtoupper($host), (string) \stream_get_contents($client));
        }
    }

    /** @dataProvider refused */
    #[DataProvider('refused')]
    public function testInvalidOptionsAreRefusedByName(string $message, \Closure $make): void
    {
        $this->expectExceptionMessage($message);

        $make();
    }

    public static function refused(): iterable
    {
        yield 'a task twice' => ['The application has a background task "a" already', static fn() => (new App())->task('a', static fn() => null)->task('a', static fn() => null)];
        yield 'a check twice' => ['The application has a health check "a" already', static fn() => (new App())->check('a', static fn() => null)->check('a', static fn() => null)];
        yield 'a check all the time' => ['The interval and the timeout of the health check "a" must be above 0 seconds and finite, got 0 and 2', static fn() => (new App())->check('a', static fn() => null, every: 0.0)];
        yield 'a check that never comes' => ['must be above 0 seconds and finite, got INF and 2', static fn() => (new App())->check('a', static fn() => null, every: \INF)];
        $generator = static function () {
            yield;
        };
        yield 'a task that is a generator' => [') is a generator, which would return before its body runs: call functions instead of `yield`', static fn() => (new App())->task('a', $generator)];
        yield 'a hook that is a generator' => ['The onStart hook (closure at LifecycleTest.php:', static fn() => (new App())->onStart($generator)];
        yield 'a last hook that is a generator' => ['The onStop hook (closure at LifecycleTest.php:', static fn() => (new App())->onStop($generator)];
        yield 'a check that is a generator' => ['The health check "a" (closure at LifecycleTest.php:', static fn() => (new App())->check('a', $generator)];
        yield 'a pause that shrinks' => ['The pauses of a restart must be at least 0 seconds and finite, and the longest not below the first, got 2 and 1', static fn() => RestartPolicy::onFailure(delay: 2.0, maxDelay: 1.0)];
        yield 'no restarts' => ['The limit of restarts must be at least 1, got 0', static fn() => RestartPolicy::always(limit: 0)];
    }

    private function write(string $arguments, string $program, bool $announce = false): void
    {
        $autoload = \var_export(\dirname(__DIR__, 2) . '/autoload.php', true);
        $run = $announce ? '$app->run(static fn(array $addresses) => say($addresses[0]));' : '$app->run();';
        $routes = $announce || \str_contains($program, '$routes') ? '$routes = $app->http("127.0.0.1:0");' : '';
        \file_put_contents($this->app->file, <<<PHP
            <?php
            require $autoload;
            use Weft\\Http\\Response;
            use function Weft\\{all, delay};
            function say(string \$text): void { fwrite(STDERR, "\$text\\n"); }
            \$app = new Weft\\App($arguments);
            $routes
            $program
            $run
            PHP);
    }

    private function start(string $arguments, string $program, bool $announce = false): void
    {
        $this->write($arguments, $program, $announce);
        $this->process = \proc_open(
            [\PHP_BINARY, '-d', 'extension=' . Extension::library(), '-d', 'display_errors=stderr', $this->app->file],
            [0 => ['file', '/dev/null', 'r'], 1 => ['file', '/dev/null', 'w'], 2 => ['pipe', 'w']],
            $pipes,
        ) ?: null;
        $this->errors = $pipes[2];
        \stream_set_timeout($this->errors, self::DEADLINE);
    }

    private function line(): string
    {
        $line = \fgets($this->errors);
        self::assertIsString($line, 'the application wrote nothing more');

        return \rtrim($line, "\n");
    }

    /** @return array{int, string} exit code and what it still wrote */
    private function end(): array
    {
        $told = (string) \stream_get_contents($this->errors);
        self::assertFalse(\stream_get_meta_data($this->errors)['timed_out'], "it does not end: $told");
        $code = \proc_close($this->process);
        $this->process = null;

        return [$code, $told];
    }

    /** Waits until `/ready` is answered so. */
    private function awaitReady(string $url, int $status, string $body): void
    {
        $deadline = \microtime(true) + self::DEADLINE;
        do {
            $answer = @HttpAnswer::of($url, ['timeout' => self::DEADLINE, 'header' => 'Connection: close']);
            if ([$answer->status, (string) $answer->body] === [$status, $body]) {
                self::assertTrue(true);

                return;
            }
            \usleep(10_000);
        } while (\microtime(true) < $deadline);
        self::fail("$url is answered {$answer->status} {$answer->body}");
    }
}
