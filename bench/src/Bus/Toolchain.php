<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\BenchmarkException;

/** Builds what has to be built and says which versions took part. */
final class Toolchain
{
    /** @param string $root the repository */
    public function __construct(private readonly string $root)
    {
    }

    /** @return string path of the program */
    public function buildGo(): string
    {
        $program = "{$this->root}/bench/out/bus-go";
        $command = sprintf('cd %s && go build -o %s . >&2', escapeshellarg($this->goFolder()), escapeshellarg($program));
        passthru($command, $code);
        if ($code !== 0) {
            throw new BenchmarkException("cannot build the Go contender (code $code): it needs the Go version its go.mod names");
        }

        return $program;
    }

    /** @return array<string, string> by product */
    public function versions(): array
    {
        return array_filter([
            'weft' => self::output('git -C ' . escapeshellarg($this->root) . ' describe --always --tags'),
            'php' => PHP_VERSION,
            'ext-amqp' => (string) phpversion('amqp'),
            'symfony-messenger' => self::package('php-symfony-messenger'),
            'doctrine-dbal' => self::package('php-doctrine-dbal'),
            'rustc' => self::firstMatch('/^rustc (\S+)/', self::output('rustc --version')),
            'go' => self::firstMatch('/go(\d\S*)/', self::output('go version')),
            'amqp091-go' => $this->module('rabbitmq/amqp091-go'),
            'pgx' => $this->module('jackc/pgx/v5'),
        ]);
    }

    private function module(string $name): string
    {
        $modules = (string) file_get_contents($this->goFolder() . '/go.mod');

        return self::firstMatch('#' . preg_quote($name, '#') . ' v(\S+)#', $modules);
    }

    private function goFolder(): string
    {
        return "{$this->root}/bench/bus/peers/go";
    }

    private static function package(string $name): string
    {
        return self::firstMatch('/^([^+-]*)/', self::output("dpkg-query -W -f '\${Version}' $name"));
    }

    private static function output(string $command): string
    {
        return trim((string) shell_exec("$command 2>/dev/null"));
    }

    private static function firstMatch(string $pattern, string $text): string
    {
        return preg_match($pattern, $text, $match) ? $match[1] : '';
    }
}
