<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\Messenger\Exception\UnrecoverableMessageHandlingException;
use Symfony\Component\Messenger\MessageBusInterface;

use function Weft\delay;

final class JobHandler
{
    /** @var list<string> what was handled, by all kernels */
    public static array $handled = [];

    public static int $waiting = 0;

    /** @var array<int, string> by number of the message */
    public static array $trusted = [];

    /** Two properties as an application has them, which only `isolate` keeps apart. */
    public static string $tenant = '';
    public static string $locale = '';

    /** @var array<int, array{string, string}> tenant and locale, by number of the message */
    public static array $seen = [];

    /** @var array<int, true> the handlers that have run, one for each kernel */
    public static array $instances = [];

    /** @var list<list<string>> the notes of other messages that each message has found */
    public static array $found = [];

    public function __construct(private readonly MessageBusInterface $bus, private readonly Notes $notes)
    {
    }

    public function __invoke(Job $job): void
    {
        self::$instances[\spl_object_id($this)] = true;
        self::$found[] = $this->notes->taken;
        $this->notes->taken[] = "$job->what $job->number";
        match ($job->what) {
            'together' => self::together($job->number),
            'trust' => self::trust($job->number),
            'become' => self::become($job->number),
            'send and give up' => $this->sendAndGiveUp(),
            'fail' => throw new \RuntimeException('on purpose'),
            'send' => $this->bus->dispatch(new Job('note', $job->number)),
            default => null,
        };
        self::$handled[] = "$job->what $job->number";
    }

    private static function together(int $many): void
    {
        ++self::$waiting;
        while (self::$waiting < $many) {
            delay(0.002);
        }
    }

    /** Two messages set Symfony's static property, and then both read it. */
    private static function trust(int $number): void
    {
        Request::setTrustedProxies(["192.0.2.$number"], Request::HEADER_X_FORWARDED_FOR);
        self::together(2);
        self::$trusted[$number] = \implode(Request::getTrustedProxies());
    }

    /** Two messages set static properties of the application, and then both read them. */
    private static function become(int $number): void
    {
        self::$tenant = "tenant $number";
        self::$locale = "locale $number";
        self::together(2);
        self::$seen[$number] = [self::$tenant, self::$locale];
    }

    private function sendAndGiveUp(): never
    {
        $this->bus->dispatch(new Job('note', 99));
        throw new UnrecoverableMessageHandlingException('no retry helps');
    }
}
