<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use Doctrine\Persistence\ConnectionRegistry;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bus\Bus;
use Weft\Tests\Cli\Supervised;
use Weft\Tests\Timing;

require_once __DIR__ . '/../Doctrine/autoload.php';

/** What the runtime says of an application that is not set up. */
final class RuntimeTest extends TestCase
{
    private const FRONT_CONTROLLER = <<<'PHP'
        <?php
        require %s;
        require %s;
        %s
        $runtime = new Weft\Bridge\Symfony\Runtime(['project_dir' => __DIR__, 'disable_dotenv' => true]);
        [$make, $arguments] = $runtime->getResolver(static fn(array $context): Kernel => new Kernel($context['APP_ENV'], (bool) $context['APP_DEBUG']))->resolve();
        exit($runtime->getRunner($make(...$arguments))->run());
        PHP;

    /** A kernel without WeftBundle, whose configuration asks for it. */
    private const WITHOUT_BUNDLE = <<<'PHP'
        final class Kernel extends Symfony\Component\HttpKernel\Kernel
        {
            use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
            public function registerBundles(): iterable { return [new Symfony\Bundle\FrameworkBundle\FrameworkBundle()]; }
            public function getProjectDir(): string { return __DIR__; }
            protected function configureContainer($container): void { $container->extension('weft', ['bus' => 'sqlite:bus.db']); }
            protected function configureRoutes($routes): void {}
        }
        PHP;

    /** A kernel with an error page of its own. */
    private const FAILING = <<<'PHP'
        final class Kernel extends Symfony\Component\HttpKernel\Kernel implements Symfony\Component\EventDispatcher\EventSubscriberInterface
        {
            use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
            public static function getSubscribedEvents(): array { return ['kernel.exception' => 'page', 'kernel.terminate' => 'end']; }
            public function registerBundles(): iterable { return [new Symfony\Bundle\FrameworkBundle\FrameworkBundle()]; }
            public function getProjectDir(): string { return __DIR__; }
            protected function configureContainer($container): void { $container->extension('framework', ['secret' => 's']); }
            protected function configureRoutes($routes): void {
                $routes->add('fine', '/fine')->controller([$this, 'fine']);
                $routes->add('error', '/error')->controller([$this, 'error']);
            }
            public function shutdown(): void {
                $this->booted && file_put_contents(__DIR__ . '/shut-down', '+', FILE_APPEND);
                parent::shutdown();
            }
            public function fine(): Symfony\Component\HttpFoundation\Response { return new Symfony\Component\HttpFoundation\Response('fine'); }
            public function error(Symfony\Component\HttpFoundation\Request $request): never {
                echo $request->query->get('printed', '');
                undefined_function();
            }
            public function end(Symfony\Component\HttpKernel\Event\TerminateEvent $event): void {
                !$event->getRequest()->query->has('end') || throw new RuntimeException("the end of {$event->getRequest()->getRequestUri()} has failed");
            }
            public function page(Symfony\Component\HttpKernel\Event\ExceptionEvent $event): void {
                !$event->getRequest()->query->has('broken') || throw new LogicException('the page is broken');
                $event->setResponse(new Symfony\Component\HttpFoundation\Response("page of {$event->getRequest()->getRequestUri()}: {$event->getThrowable()->getMessage()}"));
            }
        }
        PHP;

    /** A kernel that trusts every peer, as behind a balancer whose addresses change. */
    private const BEHIND_A_BALANCER = <<<'PHP'
        final class Kernel extends Symfony\Component\HttpKernel\Kernel
        {
            use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
            public function registerBundles(): iterable { return [new Symfony\Bundle\FrameworkBundle\FrameworkBundle()]; }
            public function getProjectDir(): string { return __DIR__; }
            protected function configureContainer($container): void {
                $container->extension('framework', ['secret' => 's', 'trusted_proxies' => 'REMOTE_ADDR', 'trusted_headers' => ['x-forwarded-for', 'x-forwarded-proto']]);
            }
            protected function configureRoutes($routes): void { $routes->add('client', '/client')->controller([$this, 'client']); }
            public function client(Symfony\Component\HttpFoundation\Request $request): Symfony\Component\HttpFoundation\Response {
                return new Symfony\Component\HttpFoundation\Response("{$request->getScheme()} {$request->getClientIp()}");
            }
        }
        PHP;

    /** A kernel whose sessions note their use every two minutes. */
    private const WITH_SESSIONS = <<<'PHP'
        final class Kernel extends Symfony\Component\HttpKernel\Kernel
        {
            use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
            public function registerBundles(): iterable { return [new Symfony\Bundle\FrameworkBundle\FrameworkBundle(), new Weft\Bridge\Symfony\WeftBundle()]; }
            public function getProjectDir(): string { return __DIR__; }
            protected function configureContainer($container): void {
                $container->extension('framework', ['secret' => 's', 'session' => ['storage_factory_id' => 'session.storage.factory.native', 'metadata_update_threshold' => 120]]);
            }
            protected function configureRoutes($routes): void { $routes->add('threshold', '/threshold')->controller([$this, 'threshold']); }
            public function threshold(Symfony\Component\HttpFoundation\Request $request): Symfony\Component\HttpFoundation\Response {
                $metadata = $request->getSession()->getMetadataBag();
                return new Symfony\Component\HttpFoundation\Response((new ReflectionProperty($metadata, 'updateThreshold'))->getValue($metadata));
            }
        }
        PHP;

    /** A kernel whose controller has paid when the file `answered` is there, and stores it then. Another one streams until it is stopped. */
    private const THAT_PAYS = <<<'PHP'
        final class Kernel extends Symfony\Component\HttpKernel\Kernel implements Symfony\Component\EventDispatcher\EventSubscriberInterface
        {
            use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
            public static function getSubscribedEvents(): array { return ['kernel.exception' => ['report', 10]]; }
            public function report(Symfony\Component\HttpKernel\Event\ExceptionEvent $event): void {
                file_put_contents(__DIR__ . '/reported', get_class($event->getThrowable()) . "\n", FILE_APPEND);
            }
            public function registerBundles(): iterable { return [new Symfony\Bundle\FrameworkBundle\FrameworkBundle()]; }
            public function getProjectDir(): string { return __DIR__; }
            protected function configureContainer($container): void { $container->extension('framework', ['secret' => 's']); }
            protected function configureRoutes($routes): void { 
                foreach (['pay', 'payWrapped', 'ticks', 'fail'] as $action) { $routes->add($action, "/$action")->controller([$this, $action]); }
            }
            public function pay(): Symfony\Component\HttpFoundation\Response {
                touch(__DIR__ . '/paying');
                try {
                    while (!file_exists(__DIR__ . '/answered')) { usleep(5_000); clearstatcache(); }
                    touch(__DIR__ . '/stored');
                } finally {
                    touch(__DIR__ . '/ended');
                }
                return new Symfony\Component\HttpFoundation\Response('paid');
            }
            /** As Twig and DBAL throw what was thrown in them. */
            public function payWrapped(): Symfony\Component\HttpFoundation\Response {
                try {
                    return $this->pay();
                } catch (Exception $thrown) {
                    throw new LogicException('wrapped', 0, $thrown);
                }
            }
            public function ticks(): Symfony\Component\HttpFoundation\Response {
                return new Symfony\Component\HttpFoundation\StreamedResponse(static function (): void {
                    try {
                        while (true) { echo 'tick'; flush(); usleep(1_000); }
                    } finally {
                        touch(__DIR__ . '/ended');
                    }
                });
            }
            public function fail(): never { throw new RuntimeException('on purpose'); }
        }
        PHP;

    /** A kernel whose controllers leave transactions open. Nobody can connect to its second database. */
    private const WITH_DOCTRINE = <<<'PHP'
        final class Kernel extends Symfony\Component\HttpKernel\Kernel
        {
            use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
            public function registerBundles(): iterable { return [new Symfony\Bundle\FrameworkBundle\FrameworkBundle(), new Weft\Bridge\Symfony\WeftBundle()]; }
            public function getProjectDir(): string { return __DIR__; }
            protected function configureContainer($container): void {
                $container->extension('framework', ['secret' => 's']);
                foreach (['used' => __DIR__ . '/used.db', 'unused' => __DIR__ . '/nowhere/unused.db'] as $name => $file) {
                    $container->services()->set("connection.$name", Doctrine\DBAL\Connection::class)->factory([self::class, 'connect'])->args([$file])->public();
                }
                $container->services()->set('doctrine', Weft\Tests\Bridge\Symfony\Connections::class)->public()
                    ->args([new Symfony\Component\DependencyInjection\Reference('service_container'), ['used' => 'connection.used', 'unused' => 'connection.unused']]);
            }
            protected function configureRoutes($routes): void {
                foreach (['leave', 'mark', 'write', 'transaction'] as $action) { $routes->add($action, "/$action/{id}")->controller([$this, $action]); }
            }
            public static function connect(string $file): Doctrine\DBAL\Connection {
                is_dir(dirname($file)) || throw new LogicException("the connection to $file was made");
                return Weft\Tests\Bridge\Symfony\Connections::connect($file);
            }
            public function leave(int $id) { $this->connection()->beginTransaction(); return $this->write($id); }
            public function mark(int $id) {
                $this->connection()->beginTransaction();
                $this->connection()->setRollbackOnly();
                return $this->write($id);
            }
            public function transaction(int $id) { return $this->connection()->transactional(fn() => $this->write($id)); }
            public function write(int $id) {
                $connection = $this->connection();
                $level = $connection->getTransactionNestingLevel();
                $connection->executeStatement('CREATE TABLE IF NOT EXISTS items (id INT)');
                $connection->executeStatement('INSERT INTO items VALUES (?)', [$id]);
                return new Symfony\Component\HttpFoundation\JsonResponse([$level, array_map(intval(...), $connection->fetchFirstColumn('SELECT id FROM items'))]);
            }
            private function connection(): Doctrine\DBAL\Connection { return $this->container->get('doctrine')->getConnection(); }
        }
        PHP;

    /** A kernel with a bus, where Messenger is installed and has no transport. */
    private const WITH_BUS = <<<'PHP'
        final class Kernel extends Symfony\Component\HttpKernel\Kernel
        {
            use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
            public function registerBundles(): iterable { return [new Symfony\Bundle\FrameworkBundle\FrameworkBundle(), new Weft\Bridge\Symfony\WeftBundle()]; }
            public function getProjectDir(): string { return __DIR__; }
            protected function configureContainer($container): void {
                $container->extension('framework', ['secret' => 's', 'messenger' => ['enabled' => true]]);
                $container->extension('weft', ['bus' => 'sqlite:' . __DIR__ . '/bus.db']);
            }
            protected function configureRoutes($routes): void { $routes->add('bus', '/bus')->controller([$this, 'bus']); }
            public function bus(): Symfony\Component\HttpFoundation\Response { return new Symfony\Component\HttpFoundation\Response(get_class($this->container->get(Weft\Bus\Bus::class))); }
        }
        PHP;

    private string $directory;

    protected function setUp(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-runtime-' . \bin2hex(\random_bytes(6));
        \mkdir($this->directory);
        $this->write(self::WITHOUT_BUNDLE);
    }

    private function write(string $kernel): void
    {
        \file_put_contents("$this->directory/index.php", \sprintf(
            self::FRONT_CONTROLLER,
            \var_export(\dirname(__DIR__, 3) . '/autoload.php', true),
            \var_export(__DIR__ . '/autoload.php', true),
            $kernel,
        ));
    }

    protected function tearDown(): void
    {
        \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    public function testTheLogSaysHowTheBundleIsRegistered(): void
    {
        $run = $this->serve([]);

        self::assertStringContainsString('config/bundles.php registers it: Weft\Bridge\Symfony\WeftBundle::class => ["all" => true]', $run->wait('WeftBundle is not registered')['message']);
    }

    public function testAKernelThatDoesNotBootIsAnsweredWithTheReasonWhileOneDebugs(): void
    {
        self::assertStringContainsString('no extension able to load the configuration for', $this->answer($this->serve(['APP_DEBUG' => '1'])));
        self::assertStringNotContainsString('no extension able', $this->answer($this->serve(['APP_DEBUG' => '0'])));
    }

    public function testAnAddressInUseIsNamedInOneLineOfTheLog(): void
    {
        $other = \stream_socket_server('tcp://127.0.0.1:0');
        self::assertIsResource($other);
        $address = \stream_socket_get_name($other, false);

        $run = $this->serve(['WEFT_LISTEN' => $address]);

        self::assertStringContainsString("cannot listen on $address: Address already in use", $run->wait('cannot listen')['message']);
        $run->wait('ended with exit code');
        self::assertSame('', $run->other);
    }

    public function testAnOptionThatIsRefusedIsNamedInOneLineOfTheLog(): void
    {
        $refusals = [
            'WEFT_KERNELS' => ['auto', 'WEFT_KERNELS is "auto": it must be an integer of at least 1'],
            'WEFT_KERNEL_WAIT' => ['5s', 'WEFT_KERNEL_WAIT is "5s": it must be a number of seconds, at least 0'],
            'WEFT_KERNEL_MEMORY' => ['lots', 'WEFT_KERNEL_MEMORY is "lots": it must be a number of bytes, optionally with K, M or G, such as 256M'],
            'WEFT_CANCEL_ON_DISCONNECT' => ['maybe', 'WEFT_CANCEL_ON_DISCONNECT is "maybe": it must be true, false, 1, 0, yes, no, on or off'],
            'WEFT_LISTEN' => ['8011', 'WEFT_LISTEN: "8011" is not an address to listen on'],
            'WEFT_PUBLIC_DIR' => ['/nope', 'WEFT_PUBLIC_DIR: the directory /nope cannot be used'],
            'WEFT_ISOLATE' => ['App\Missing::$value', 'WEFT_ISOLATE: '],
        ];
        foreach ($refusals as $variable => [$value, $message]) {
            $run = $this->serve([$variable => $value]);

            self::assertStringStartsWith($message, $run->wait($variable)['message']);
            $run->wait('ended with exit code');
            self::assertSame('', $run->other);
        }
    }

    public function testTheMemoryOfAKernelMayHaveAUnit(): void
    {
        $this->write(self::FAILING);
        $run = $this->serve(['APP_ENV' => 'prod', 'APP_DEBUG' => '0', 'WEFT_KERNEL_MEMORY' => '1G']);

        self::assertSame('fine', (new Browser($this->address($run)))->get('/fine')->body);
    }

    public function testAnErrorOfAControllerIsAnsweredByTheApplicationsErrorPageForItsRequest(): void
    {
        $this->write(self::FAILING);
        $run = $this->serve(['APP_ENV' => 'prod', 'APP_DEBUG' => '0', 'WEFT_KERNELS' => '1']);
        $browser = new Browser($this->address($run));

        foreach (['/error?tag=a', '/error?tag=b'] as $path) {
            $page = $browser->get($path);
            self::assertSame([500, "page of $path: Call to undefined function undefined_function()"], [$page->status, $page->body]);
        }
        self::assertSame('fine', $browser->get('/fine')->body);
    }

    public function testAListenerThatFailsAfterTheResponseDoesNotTakeItAway(): void
    {
        $this->write(self::FAILING);
        $run = $this->serve(['APP_ENV' => 'prod', 'APP_DEBUG' => '0', 'WEFT_KERNELS' => '1']);
        $address = $this->address($run);
        $browser = new Browser($address);

        foreach (['/error?end=a' => 'page of /error?end=a: Call to undefined function undefined_function()', '/fine?end=b' => 'fine'] as $path => $body) {
            self::assertSame($body, $browser->get($path)->body);
            $run->wait("the end of $path has failed");
            self::assertSame('fine', $browser->get('/fine')->body);
        }
        $context = \stream_context_create(['http' => ['method' => 'HEAD', 'ignore_errors' => true]]);
        self::assertStringContainsString('text/html', \implode("\n", \get_headers("http://$address/error?end=c", false, $context) ?: []));
    }

    public function testAnErrorPageThatFailsIsA500EvenIfTheControllerHasPrintedSomething(): void
    {
        $this->write(self::FAILING);
        $run = $this->serve(['APP_ENV' => 'prod', 'APP_DEBUG' => '0', 'WEFT_KERNELS' => '1']);

        $page = (new Browser($this->address($run)))->get('/error?printed=partial&broken');

        self::assertSame([500, "500 Internal Server Error\n"], [$page->status, $page->body]);
    }

    public function testAKernelIsShutDownBeforeItIsDropped(): void
    {
        $this->write(self::FAILING);
        $run = $this->serve(['APP_ENV' => 'prod', 'APP_DEBUG' => '0', 'WEFT_KERNELS' => '1', 'WEFT_KERNEL_REQUESTS' => '1']);
        $browser = new Browser($this->address($run));

        foreach (['/fine' => 'fine', '/fine?end=a' => 'fine'] as $path => $body) {
            self::assertSame($body, $browser->get($path)->body);
        }
        $run->signal(\SIGTERM);
        self::assertSame(0, $run->end());
        self::assertSame('++', \file_get_contents("$this->directory/shut-down"));
    }

    public function testTheTrustedProxyRemoteAddrIsThePeerOfEachRequest(): void
    {
        $this->write(self::BEHIND_A_BALANCER);
        $run = $this->serve(['APP_ENV' => 'prod', 'APP_DEBUG' => '0', 'WEFT_KERNELS' => '1']);
        $address = $this->address($run);

        foreach (['127.0.0.1', '127.0.0.2', '127.0.0.3'] as $balancer) {
            $context = \stream_context_create(['socket' => ['bindto' => "$balancer:0"], 'http' => ['header' => "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https"]]);
            self::assertSame('https 192.0.2.7', \file_get_contents("http://$address/client", false, $context), "by $balancer");
        }
    }

    public function testTheThresholdOfTheMetadataOfASessionIsThatOfTheConfiguration(): void
    {
        $this->write(self::WITH_SESSIONS);
        $run = $this->serve(['APP_ENV' => 'prod', 'APP_DEBUG' => '0']);

        self::assertSame('120', (new Browser($this->address($run)))->get('/threshold')->body);
    }

    public function testABusNeedsNoTransportOfMessenger(): void
    {
        $this->write(self::WITH_BUS);
        $run = $this->serve(['APP_ENV' => 'prod', 'APP_DEBUG' => '0']);

        self::assertSame(Bus::class, (new Browser($this->address($run)))->get('/bus')->body);
    }

    public function testATransactionThatARequestLeavesOpenIsNotThatOfTheNextRequest(): void
    {
        if (!\interface_exists(ConnectionRegistry::class)) {
            self::markTestSkipped('Doctrine is not installed: scripts/setup test');
        }
        $this->write(\sprintf("require_once %s;\n", \var_export(\dirname(__DIR__) . '/Doctrine/autoload.php', true)) . self::WITH_DOCTRINE);
        $run = $this->serve(['APP_ENV' => 'prod', 'APP_DEBUG' => '0', 'WEFT_KERNELS' => '1']);
        $browser = new Browser($this->address($run));

        $answers = \array_map(static fn(string $path): string => $browser->get($path)->body, ['/write/1', '/leave/2', '/write/3', '/mark/4', '/transaction/5', '/write/6']);

        self::assertSame(['[0,[1]]', '[1,[1,2]]', '[0,[1,3]]', '[1,[1,3,4]]', '[1,[1,3,5]]', '[0,[1,3,5,6]]'], $answers);
        $run->signal(\SIGTERM);
        self::assertSame(0, $run->end());
        self::assertSame([], \preg_grep('/failed/', \array_column($run->log, 'message')));
    }

    public function testARequestWhoseClientHasGoneIsFinishedAsUnderPhpFpm(): void
    {
        $this->write(self::THAT_PAYS);
        $run = $this->serve(['APP_ENV' => 'prod', 'APP_DEBUG' => '0']);
        $exists = fn(string $name): \Closure => fn(): bool => \file_exists("$this->directory/$name");
        $browser = new Browser($this->address($run));
        $client = $browser->send('GET', '/pay');
        Timing::until($exists('paying'), 'the request begins');
        \fclose($client);
        // The server has noticed that it has gone when it answers another one.
        self::assertSame(404, $browser->get('/')->status);
        \touch("$this->directory/answered");

        Timing::until($exists('stored'), 'what was paid is stored');
        $run->signal(\SIGTERM);
        self::assertSame(0, $run->end());
        self::assertSame([], \preg_grep('/cancelled/', \array_column($run->log, 'message')));
    }

    /** @return iterable<string, array{string}> */
    public static function cancelled(): iterable
    {
        yield 'as it is' => ['/pay'];
        yield 'in another exception' => ['/payWrapped'];
    }

    /** @dataProvider cancelled */
    #[DataProvider('cancelled')]
    public function testACancelledRequestIsNoErrorOfTheApplication(string $path): void
    {
        $this->write(self::THAT_PAYS);
        $run = $this->serve(['APP_ENV' => 'prod', 'APP_DEBUG' => '0', 'WEFT_CANCEL_ON_DISCONNECT' => 'true']);
        $exists = fn(string $name): \Closure => fn(): bool => \file_exists("$this->directory/$name");
        $browser = new Browser($this->address($run));
        $client = $browser->send('GET', $path);
        Timing::until($exists('paying'), 'the request begins');
        \fclose($client);
        Timing::until($exists('ended'), 'the request is cancelled');

        self::assertSame(500, $browser->get('/fail')->status);
        self::assertSame("RuntimeException\n", \file_get_contents("$this->directory/reported"));
        $run->signal(\SIGTERM);
        self::assertSame(0, $run->end());
        self::assertFileDoesNotExist("$this->directory/stored");
        self::assertStringNotContainsString('Cancelled', $run->other);
        self::assertSame([], \preg_grep('/cancelled|wrapped/', \array_column($run->log, 'message')));
    }

    public function testAStreamedResponseEndsWhenItsClientHasGone(): void
    {
        $this->write(self::THAT_PAYS);
        $run = $this->serve(['APP_ENV' => 'prod', 'APP_DEBUG' => '0']);
        $client = (new Browser($this->address($run)))->send('GET', '/ticks');
        while (!\str_contains($line = (string) \fread($client, 99), 'tick')) {
            self::assertNotSame('', $line, 'the response begins');
        }
        \fclose($client);

        Timing::until(fn(): bool => \file_exists("$this->directory/ended"), 'the response ends');
    }

    public function testABodyMayBeAsLargeAsPhpsConfigurationSays(): void
    {
        $this->write(self::FAILING);
        foreach (['1K' => [1024 => 200, 1025 => 413], '0' => [9 << 20 => 200]] as $size => $statuses) {
            \file_put_contents("$this->directory/post.ini", "post_max_size=$size");
            $run = $this->serve(['APP_ENV' => 'prod', 'APP_DEBUG' => '0', 'PHP_INI_SCAN_DIR' => \PHP_CONFIG_FILE_SCAN_DIR . ":$this->directory"]);
            $browser = new Browser($this->address($run));
            foreach ($statuses as $bytes => $status) {
                self::assertSame($status, $browser->receive($browser->send('POST', '/fine', \str_pad('text=', $bytes, 'x')))->status, "$bytes bytes, post_max_size is $size");
            }
            // The last body is in a temporary file.
            $run->signal(\SIGTERM);
            self::assertSame(0, $run->end());
        }
    }

    /** @param array<string, string> $environment */
    private function serve(array $environment): Supervised
    {
        return new Supervised("$this->directory/index.php", [], $environment + ['WEFT_LISTEN' => '127.0.0.1:0', 'WEFT_PUBLIC_DIR' => '']);
    }

    private function answer(Supervised $run): string
    {
        return (new Browser($this->address($run)))->get('/')->body;
    }

    private function address(Supervised $run): string
    {
        \preg_match('/\d+\.\d+\.\d+\.\d+:\d+/', (string) $run->wait('listening on')['message'], $address);

        return $address[0];
    }
}
