<?php

declare(strict_types=1);

namespace Weft\Bench\Http;

use Weft\Bench\BenchmarkException;

/** All contenders, in the order of the first round. */
final class Contenders
{
    /**
     * @param string $bench the directory bench/http
     * @param string $out the directory bench/out
     * @param string $extension path of libweft.so
     * @param string|null $swoole path of swoole.so
     * @param string|null $roadRunner path of rr
     * @param string|null $frankenPhp path of frankenphp
     *
     * @return list<Contender>
     */
    public static function all(string $bench, string $out, string $extension, ?string $swoole, ?string $roadRunner, ?string $frankenPhp): array
    {
        $php = [PHP_BINARY, '-d', 'opcache.enable_cli=1'];
        $weft = "$bench/weft/app.php";
        $router = "$bench/peers/php/public/index.php";
        $node = "$bench/peers/node";

        return array_values(array_filter([
            new Contender('weft', [...$php, '-d', "extension=$extension", $weft], true, true, true, [$extension, $weft]),
            new Contender(
                'weft-pipelined',
                ['env', 'POOL_SIZE=4', 'MAX_PIPELINE=32', ...$php, '-d', "extension=$extension", $weft],
                true,
                true,
                true,
                [$extension, $weft],
                [Workload::Query, Workload::Queries5, Workload::Queries20, Workload::Update, Workload::Fortunes],
            ),
            $swoole === null ? null : new Contender('swoole', [...$php, '-d', "extension=$swoole", "$bench/peers/swoole/server.php"], true, true, true, [$swoole]),
            $roadRunner === null ? null : new Contender(
                'roadrunner',
                ['env', 'COMMAND=' . implode(' ', [...$php, "$bench/peers/roadrunner/worker.php"]), $roadRunner, 'serve', '-c', "$bench/peers/roadrunner/rr.yaml"],
                true,
                true,
                true,
                [$roadRunner],
            ),
            $frankenPhp === null ? null : new Contender(
                'frankenphp',
                // GODEBUG as in its images.
                ['env', "ROOT=$bench/peers/frankenphp", 'GODEBUG=cgocheck=0', $frankenPhp, 'run', '--config', "$bench/peers/frankenphp/Caddyfile", '--adapter', 'caddyfile'],
                true,
                true,
                true,
                [$frankenPhp],
            ),
            new Contender('go', ["$out/http-go"], true, true, true, []),
            new Contender('node', ['node', "$node/server.js"], true, false, true, []),
            new Contender('php-fpm', ["$bench/peers/php-fpm/serve"], true, false, true, []),
            new Contender(
                'php-builtin',
                [...$php, '-d', 'opcache.validate_timestamps=0', '-S', '127.0.0.1:{port}', '-t', "$out/http-files", $router],
                false,
                true,
                false,
                [],
            ),
            new Contender('floor-epoll', ["$out/http-floor/release/floor", 'epoll'], false, true, true, [], [Workload::Hello], isFloor: true),
            new Contender('floor-io_uring', ["$out/http-floor/release/floor", 'io_uring'], false, true, true, [], [Workload::Hello], isFloor: true),
        ]));
    }

    /**
     * @param list<Contender> $all
     * @param list<string> $names none means every server
     *
     * @return non-empty-list<Contender>
     *
     * @throws BenchmarkException for an unknown name
     */
    public static function select(array $all, array $names): array
    {
        $systems = array_map(static fn (Contender $contender): string => $contender->system, $all);
        foreach (array_diff($names, $systems) as $name) {
            throw new BenchmarkException("there is no contender '$name', there are: " . implode(' ', $systems));
        }

        return array_values(array_filter(
            $all,
            static fn (Contender $contender): bool => $names === [] ? !$contender->isFloor : in_array($contender->system, $names, true),
        ));
    }
}
