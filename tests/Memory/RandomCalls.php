<?php

declare(strict_types=1);

namespace Weft\Tests\Memory;

use Weft\Native;

use function Weft\delay;

/** A program of random calls of the extension's functions and methods. */
final class RandomCalls
{
    /**
     * Not called: they start processes and signal them, replace what the whole process depends on, or would wait for what
     * never comes.
     */
    private const LEFT_OUT = [
        'weft\native\panic', 'weft\native\supervisor', 'weft\native\poll', 'weft\native\take', 'weft\native\cancel',
        'weft\native\signal', 'weft\native\tellsupervisor', 'weft\native\switchhooks', 'weft\native\nap',
    ];

    /** @var list<object> */
    private array $objects = [];

    private int $calls = 0;
    private int $thrown = 0;

    /** @param list<\ReflectionFunctionAbstract> $callables */
    private function __construct(private readonly Arguments $arguments, private readonly array $callables)
    {
    }

    public static function run(int $seed, int $calls): void
    {
        ini_set('memory_limit', '512M');
        error_reporting(E_ALL & ~E_DEPRECATED);
        chdir(sys_get_temp_dir());
        $random = new self(new Arguments($seed), self::callables());
        $random->objects();
        $random->several(intdiv($calls, 3));
        \Weft\run(static function () use ($random, $calls): void {
            for ($task = 0; $task < 4; $task++) {
                \Weft\async(static function () use ($random, $calls): void {
                    $random->several(intdiv($calls, 6));
                    delay(0.0);
                });
            }
        });
        $random->objects = [];
        gc_collect_cycles();
        // echo would go to what receives output.
        fwrite(STDOUT, "$random->calls calls, $random->thrown thrown\n");
    }

    /** @return list<\ReflectionFunctionAbstract> */
    private static function callables(): array
    {
        $extension = new \ReflectionExtension('weft');
        $callables = array_values($extension->getFunctions());
        foreach ($extension->getClasses() as $class) {
            array_push($callables, ...$class->getMethods(\ReflectionMethod::IS_PUBLIC));
        }

        return array_values(array_filter($callables, static function (\ReflectionFunctionAbstract $callable): bool {
            $name = strtolower($callable instanceof \ReflectionMethod ? $callable->class : $callable->name);

            return !in_array($name, self::LEFT_OUT, true);
        }));
    }

    /** Objects whose methods can do something. */
    private function objects(): void
    {
        $database = self::outcome(Native\SqlDatabase::open(new \SensitiveParameterValue('sqlite::memory:'), [], '', []));
        $this->objects = [
            $database,
            $database->transaction(1),
            $database->stream('SELECT 1', [], 10, 1),
            Native\Pool::open(['size' => 2], 'random', true, true),
            Native\HttpServer::open([], [], 'none', false),
            Native\HttpEncoder::open('gzip'),
            Native\HttpFile::open(__FILE__),
            Native\HttpStaticDir::open(__DIR__, false),
            Native\GrpcServer::open([], [], []),
            Native\GrpcChannel::open([['127.0.0.1', 1]], false, null, []),
            new Native\Histogram('weft_random_seconds', 'Random calls.', []),
            (new \ReflectionClass(Native\HttpRequest::class))->newInstanceWithoutConstructor(),
            (new \ReflectionClass(Native\GrpcCall::class))->newInstanceWithoutConstructor(),
        ];
    }

    private function several(int $calls): void
    {
        for ($call = 0; $call < $calls; $call++) {
            $this->one($this->callables[$this->arguments->below(count($this->callables))]);
        }
    }

    private function one(\ReflectionFunctionAbstract $callable): void
    {
        $this->calls++;
        $arguments = $this->arguments->random($callable);
        try {
            $outcome = match (true) {
                $callable instanceof \ReflectionFunction => $callable->invokeArgs($arguments),
                $callable->isStatic() => $callable->invokeArgs(null, $arguments),
                default => $callable->invokeArgs($this->receiver($callable), $arguments),
            };
            if (is_object($outcome)) {
                $this->objects[$this->arguments->below(40)] = $outcome;
                $this->objects = array_values($this->objects);
            } elseif (is_int($outcome) && $outcome > 0) {
                // In a task the scheduler alone may poll: it waits for what is finished.
                \Fiber::getCurrent() ?? Native\poll(0.0);
                $this->arguments->below(2) === 0 ? Native\cancel($outcome) : Native\take($outcome);
            }
        } catch (\Throwable $thrown) {
            $this->thrown++;
            if (str_contains($thrown->getMessage(), 'Rust panic')) {
                fwrite(STDOUT, "$callable->name: {$thrown->getMessage()}\n");
            }
        }
    }

    private function receiver(\ReflectionMethod $method): object
    {
        foreach ($this->objects as $object) {
            if ($object instanceof $method->class) {
                return $object;
            }
        }

        return (new \ReflectionClass($method->class))->newInstanceWithoutConstructor();
    }

    private static function outcome(int $operation): mixed
    {
        while (!in_array($operation, Native\poll(1.0), true)) {
        }

        return Native\take($operation);
    }
}
