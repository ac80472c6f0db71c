<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use PHPUnit\Framework\TestCase;
use Weft\Grpc\Status;

/** Starts servers of the example's service. */
abstract class GrpcTestCase extends TestCase
{
    protected const GET = '/api.Users/Get';
    protected const LIST = '/api.Users/List';
    protected const IMPORT = '/api.Users/Import';
    protected const LOOKUP = '/api.Users/Lookup';
    /** The request for the user 228. */
    protected const USER_228 = "\0\0\0\0\x03\x08\xE4\x01";
    protected const EMPTY_MESSAGE = "\0\0\0\0\0";

    /** @var list<GrpcProcess> */
    private array $servers = [];

    /**
     * @param string $methods PHP code: what the service does otherwise than the example's
     * @param string $arguments of `App::grpc()` after the service
     * @param string $app arguments of `App`
     * @param string $more PHP code before the server runs; the server is `$grpc`
     */
    protected function serve(string $methods = '', string $arguments = '', string $app = '', string $more = '', string $address = '127.0.0.1:0'): GrpcProcess
    {
        $autoload = var_export(\dirname(__DIR__, 2) . '/examples/users/autoload.php', true);
        $gate = GrpcProcess::GATE;
        $program = (string) tempnam(sys_get_temp_dir(), 'weft-grpc');
        file_put_contents($program, <<<PHP
            <?php
            require $autoload;
            use Weft\App;
            use Weft\Examples\Users\{GetUserRequest, ImportSummary, ListUserRequest, User, Users};
            use Weft\Grpc\{Call, Limits, MessageLimits, ServerOptions, Status, StatusException, StreamLimits};
            use Weft\Http\{Request, Response};
            use function Weft\{async, delay};
            final class Service implements Users
            {
                public function __construct(public array \$overrides)
                {
                }
                public function get(GetUserRequest \$request, Call \$call): User
                {
                    return isset(\$this->overrides['get']) ? \$this->overrides['get'](\$request, \$call) : new User(\$request->id, 'a@b', 'A', 1.5);
                }
                public function list(ListUserRequest \$request, Call \$call): iterable
                {
                    return isset(\$this->overrides['list']) ? \$this->overrides['list'](\$request, \$call) : [new User(1), new User(2)];
                }
                public function import(iterable \$requests, Call \$call): ImportSummary
                {
                    return isset(\$this->overrides['import']) ? \$this->overrides['import'](\$requests, \$call) : new ImportSummary(iterator_count(\$requests));
                }
                public function lookup(iterable \$requests, Call \$call): iterable
                {
                    foreach (\$requests as \$request) {
                        yield new User(\$request->id);
                    }
                }
            }
            $gate
            function say(string \$text): void { fwrite(STDERR, "\$text\\n"); }
            \$app = new App($app);
            \$grpc = \$app->grpc('$address', new Service([$methods])$arguments);
            $more
            \$app->run(static function (array \$addresses): void { echo \$addresses[0], "\\n"; });
            echo "ended\\n";
            PHP);

        return $this->keep(GrpcProcess::launch([$program], $program));
    }

    /** Stops it at the end of the test. */
    protected function keep(GrpcProcess $server): GrpcProcess
    {
        return $this->servers[] = $server;
    }

    protected function tearDown(): void
    {
        foreach ($this->servers as $server) {
            $server->stop();
        }
        $this->servers = [];
    }

    /** @return array{int, string} exit code and what it wrote */
    protected function grpcurl(GrpcProcess $server, string $method, string ...$options): array
    {
        $proto = ['-import-path', \dirname(__DIR__, 2) . '/examples/users', '-proto', 'users.proto'];

        return Tool::run('grpcurl', ['-plaintext', ...$proto, ...$options, $server->address, $method]);
    }

    protected static function assertStatus(Status $status, Answer $answer, string $message = ''): void
    {
        self::assertSame($status->value, $answer->status(), $answer->head . $answer->errors);
        self::assertSame($message, rawurldecode($answer->field('grpc-message') ?? ''));
    }

    protected static function frame(string $message, int $flags = 0): string
    {
        return pack('CN', $flags, \strlen($message)) . $message;
    }
}
