<?php

declare(strict_types=1);

namespace Weft\Tests\Bus;

use PHPUnit\Framework\TestCase;
use Weft\Tests\Cli\Application;
use Weft\Tests\Cli\Supervised;

/** The series of the bus on the page of `weft run --metrics`. */
final class MetricsTest extends TestCase
{
    private const DEADLINE = 60.0;

    private Application $app;

    protected function setUp(): void
    {
        $this->app = new Application('');
    }

    protected function tearDown(): void
    {
        foreach (['orders', 'billing', 'payments'] as $name) {
            \array_map(\unlink(...), \glob("{$this->app->directory}/{$name}.db-weft/*") ?: []);
            @\rmdir("{$this->app->directory}/{$name}.db-weft");
        }
    }

    public function testThePageOfTheSupervisorHasMessagesByTypeQueueAndDatabaseOfEachWorker(): void
    {
        $autoload = \var_export(\dirname(__DIR__, 2) . '/autoload.php', true);
        \file_put_contents($this->app->file, <<<PHP
            <?php
            require $autoload;
            use Weft\\Bus\\{Bus, CommandHandler, OrderedBy, SendOptions};
            #[OrderedBy('key')]
            final class Work { public function __construct(public bool \$fails, public ?string \$key = null) {} }
            final class Works
            {
                #[CommandHandler]
                public function work(Work \$work): void
                {
                    if (\$work->fails) { throw new DomainException('never'); }
                }
            }
            \$app = new Weft\\App();
            foreach (['orders' => 3, 'billing' => 1] as \$name => \$messages) {
                \$bus = Bus::connect('sqlite:' . __DIR__ . "/{\$name}.db")->handlers(new Works());
                \$bus->queue(\$name)->declare();
                for (\$i = 0; \$i < \$messages; \$i++) { \$bus->send(\$i === 2 ? new Work(true, 'a') : new Work(false)); }
                if (\$name === 'orders') { \$bus->send(new Work(false, 'a')); }
                if (\$name === 'orders') { \$bus->send(new Work(false), new SendOptions(delay: 3600.0)); }
                \$app->consume(\$bus, \$name);
            }
            \$app->run();
            PHP);
        $run = new Supervised($this->app->file, ['--metrics=127.0.0.1:0'], ['WEFT_LOG_LEVEL' => 'info']);
        $address = $run->wait('metrics')['address'];
        $expected = [
            'weft_bus_succeeded_total' => [['type' => 'Work'], '3'],
            'weft_bus_failed_total' => [['type' => 'Work'], '1'],
            'weft_bus_dead_lettered_total' => [['type' => 'Work'], '1'],
            'weft_bus_handler_duration_seconds_count' => [['type' => 'Work'], '3'],
            'weft_bus_in_flight' => [['type' => 'Work'], '0'],
            'weft_bus_queue_messages' => [['queue' => 'orders.dead'], '1'],
            'weft_bus_delayed_messages' => [['database' => "{$this->app->directory}/orders.db"], '1'],
            'weft_bus_blocked_keys' => [['queue' => 'orders'], '1'],
            'weft_bus_blocked_messages' => [['queue' => 'orders'], '1'],
            'weft_bus_outbox_messages' => [['database' => "{$this->app->directory}/billing.db"], '0'],
        ];
        $page = self::pageWith($expected, $run, $address);
        self::assertTrue(self::shows($page, 'weft_bus_delayed_messages', ['database' => "{$this->app->directory}/billing.db"], '0'), 'each database has a series of its own');
        foreach (\array_keys($expected) as $name) {
            self::assertMatchesRegularExpression('/^# HELP ' . \preg_replace('/_count$/', '', $name) . ' \S/m', $page);
        }
        $run->signal(\SIGTERM);
        self::assertSame(0, $run->end());
    }

    public function testADeliveryCountsAsRedeliveredAfterItsWorkerWasKilledAndNoOther(): void
    {
        $autoload = \var_export(\dirname(__DIR__, 2) . '/autoload.php', true);
        \file_put_contents($this->app->file, <<<PHP
            <?php
            require $autoload;
            use Weft\\Bus\\{Bus, CommandHandler, Context};
            final class Pay { public function __construct(public string \$what) {} }
            final class Payments
            {
                #[CommandHandler]
                public function pay(Pay \$pay, Context \$context): void
                {
                    if (\$pay->what === 'crash' && !\$context->redelivered()) { posix_kill(posix_getpid(), SIGKILL); }
                    if (\$pay->what === 'crash') { \$context->send(new Pay('rent')); }
                }
            }
            \$isFirst = !is_file(__DIR__ . '/payments.db');
            \$bus = Bus::connect('sqlite:' . __DIR__ . '/payments.db')->handlers(new Payments());
            \$bus->queue('payments')->declare();
            \$isFirst && \$bus->send(new Pay('crash'));
            (new Weft\\App())->consume(\$bus, 'payments')->run();
            PHP);
        $run = new Supervised($this->app->file, ['--metrics=127.0.0.1:0'], ['WEFT_LOG_LEVEL' => 'info']);
        $address = $run->wait('metrics')['address'];
        $page = self::pageWith(['weft_bus_succeeded_total' => [['type' => 'Pay'], '2'], 'weft_bus_redelivered_total' => [['type' => 'Pay'], '1']], $run, $address);

        self::assertMatchesRegularExpression('/^# HELP weft_bus_redelivered_total \S/m', $page);
        $run->signal(\SIGTERM);
        self::assertSame(0, $run->end());
    }

    /**
     * @param array<string, array{array<string, string>, string}> $expected labels and value of each series
     * @return string the page when it shows them
     */
    private static function pageWith(array $expected, Supervised $run, string $address): string
    {
        $missing = $expected;
        // What waits is looked up now and then.
        for ($deadline = \microtime(true) + self::DEADLINE; $missing !== [] && \microtime(true) < $deadline; \usleep(50_000)) {
            $page = (string) @\file_get_contents("http://{$address}/metrics");
            $missing = \array_filter($expected, static fn(array $series, string $name): bool => !self::shows($page, $name, ...$series), \ARRAY_FILTER_USE_BOTH);
        }
        self::assertSame([], $missing, $page . $run->messages());

        return $page;
    }

    /** @param array<string, string> $labels beside that of the worker */
    private static function shows(string $page, string $name, array $labels, string $value): bool
    {
        foreach (\explode("\n", $page) as $line) {
            if (\preg_match('/^' . $name . '\{(.*)\} (\S+)$/', $line, $series) === 1 && $series[2] === $value) {
                \preg_match_all('/(\w+)="([^"]*)"/', $series[1], $pairs);
                if (\array_combine($pairs[1], $pairs[2]) == $labels + ['worker' => '1']) {
                    return true;
                }
            }
        }

        return false;
    }
}
