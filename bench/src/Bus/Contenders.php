<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\BenchmarkException;

/** All contenders, in the order of a round. */
final class Contenders
{
    /** As anybody runs a worker that matters; the same for everyone. */
    private const PHP = [PHP_BINARY, '-d', 'opcache.enable_cli=1'];

    /**
     * @param string $bench the directory bench/bus
     * @param string $goProgram where the Go contender is built
     * @param string $extension path of libweft.so
     * @param string|null $serviceBus directory with php-service-bus and its dependencies in vendor/; null: it does not take part
     *
     * @return list<Contender>
     */
    public static function all(string $bench, string $goProgram, string $extension, ?string $serviceBus = null): array
    {
        return [
            self::weft('weft-plain', Mode::Plain, Transport::RabbitMq, $bench, $extension),
            self::weft('weft-confirmed', Mode::Confirmed, Transport::RabbitMq, $bench, $extension),
            self::weft('weft-safe', Mode::Safe, Transport::RabbitMq, $bench, $extension),
            self::weft('weft-batch', Mode::Batch, Transport::RabbitMq, $bench, $extension),
            self::weft('weft-batch-safe', Mode::BatchSafe, Transport::RabbitMq, $bench, $extension),
            self::weft('weft-postgres', Mode::Confirmed, Transport::Postgres, $bench, $extension),
            self::weft('weft-embedded', Mode::Confirmed, Transport::Sqlite, $bench, $extension),
            new Contender('go', 'go', Mode::Plain, Transport::RabbitMq, [$goProgram], []),
            self::php('pure-php', $bench),
            self::php('symfony-messenger', $bench),
            ...$serviceBus === null ? [] : [self::serviceBus($bench, $serviceBus)],
        ];
    }

    /**
     * All contenders on RabbitMQ without inbox and outbox, with transient and persistent messages, without and, where they can,
     * with publisher confirms.
     *
     * @param list<Contender> $all
     *
     * @return list<Contender>
     */
    public static function matrix(array $all): array
    {
        $cells = [];
        foreach ($all as $contender) {
            if ($contender->transport === Transport::RabbitMq && $contender->mode === Mode::Plain) {
                foreach ([false, true] as $persistent) {
                    $messages = $persistent ? 'persistent' : 'transient';
                    $cells[] = $contender->with($persistent, "{$contender->system}-$messages");
                    if ($contender->canConfirm) {
                        $cells[] = $contender->with($persistent, "{$contender->system}-$messages-confirmed", Mode::Confirmed);
                    }
                }
            }
        }

        return $cells;
    }

    /**
     * @param list<Contender> $all
     * @param list<string> $names of contenders or systems; none means everyone
     *
     * @return non-empty-list<Contender> in the order of one round
     *
     * @throws BenchmarkException for an unknown name, or if a file that a contender needs is missing
     */
    public static function select(array $all, array $names): array
    {
        foreach ($names as $name) {
            array_filter($all, static fn (Contender $contender): bool => $contender->isAmong([$name])) !== []
                || throw new BenchmarkException(
                    "there is no contender '$name', there are: " . implode(' ', array_column($all, 'name')),
                );
        }
        $selected = array_values(array_filter($all, static fn (Contender $contender): bool => $contender->isAmong($names)));
        array_map(self::requireFiles(...), $selected);

        return $selected;
    }

    /**
     * @param string $bench the directory bench/bus
     * @param string $extension path of libweft.so
     * @param array<string, string> $environment more variables for it
     */
    public static function weft(
        string $name,
        Mode $mode,
        Transport $transport,
        string $bench,
        string $extension,
        array $environment = [],
    ): Contender {
        $program = "$bench/weft/app.php";

        $command = [...self::PHP, '-d', "extension=$extension", $program];

        return new Contender($name, 'weft', $mode, $transport, $command, [$extension, $program], environment: $environment);
    }

    private static function requireFiles(Contender $contender): void
    {
        if ($contender->missingFiles() !== []) {
            throw new BenchmarkException(sprintf(
                '%s needs %s; build it, or name the others with --only',
                $contender->name,
                implode(' and ', $contender->missingFiles()),
            ));
        }
    }

    private static function php(string $system, string $bench): Contender
    {
        $program = "$bench/peers/$system/app.php";

        return new Contender($system, $system, Mode::Plain, Transport::RabbitMq, [...self::PHP, $program], [$program]);
    }

    private static function serviceBus(string $bench, string $directory): Contender
    {
        $program = "$bench/peers/php-service-bus/app.php";

        return new Contender(
            'php-service-bus',
            'php-service-bus',
            Mode::Plain,
            Transport::RabbitMq,
            [...self::PHP, $program],
            [$program, "$directory/vendor/autoload.php"],
            environment: ['SERVICE_BUS' => $directory],
            canConfirm: false,
        );
    }
}
