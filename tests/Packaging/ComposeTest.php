<?php

declare(strict_types=1);

namespace Weft\Tests\Packaging;

use PHPUnit\Framework\TestCase;

/** `compose.yaml`, where there is no Docker to read it: its keys are those of the Compose specification. */
final class ComposeTest extends TestCase
{
    /** Docker refuses a file with a key that it does not know. A key that is new here is looked up in the specification first. */
    private const KEYS = [
        // https://github.com/compose-spec/compose-spec/blob/main/02-model.md
        'top' => ['name', 'services', 'volumes'],
        // 05-services.md
        'service' => ['command', 'depends_on', 'environment', 'healthcheck', 'hostname', 'image', 'ports', 'restart', 'stop_grace_period', 'tmpfs', 'ulimits', 'user', 'volumes'],
        'healthcheck' => ['disable', 'interval', 'retries', 'start_interval', 'start_period', 'test', 'timeout'],
    ];

    public function testItsKeysAreThoseOfTheSpecification(): void
    {
        $services = self::block(self::file(), 'services', 0);
        $names = self::keys($services, 2);

        self::assertSame([], \array_diff(self::keys(self::file(), 0), self::KEYS['top']));
        self::assertSame(['rabbitmq', 'postgres', 'mariadb'], $names);
        foreach ($names as $name) {
            $service = self::block($services, $name, 2);
            self::assertSame([], \array_diff(self::keys($service, 4), self::KEYS['service']), $name);
            $healthcheck = self::keys(self::block($service, 'healthcheck', 4), 6);
            self::assertContains('test', $healthcheck, $name);
            self::assertSame([], \array_diff($healthcheck, self::KEYS['healthcheck']), $name);
        }
    }

    public function testEveryVolumeIsDeclared(): void
    {
        \preg_match_all('/^      - (\w+):\//m', self::file(), $used);

        self::assertSame(self::keys(self::block(self::file(), 'volumes', 0), 2), $used[1]);
    }

    public function testThePortsAreThoseOfTheVariablesThatItNamesAndOnlyOfThisMachine(): void
    {
        \preg_match_all('/^#   export .*(?:127\.0\.0\.1):(\d+)/m', self::file(), $named);
        \preg_match_all('/^      - "127\.0\.0\.1:(\d+):\d+"$/m', self::file(), $published);

        self::assertSame(3, \substr_count(self::file(), '    ports:'));
        self::assertEqualsCanonicalizing($named[1], $published[1]);
        self::assertDoesNotMatchRegularExpression('/^      - "\d+:\d+"/m', self::file());
    }

    /** @return list<string> the keys of a mapping that is indented so far */
    private static function keys(string $yaml, int $indentation): array
    {
        \preg_match_all('/^ {' . $indentation . '}([\w-]+):/m', $yaml, $found);

        return $found[1];
    }

    /** The value of a key: the lines below it that are indented further. */
    private static function block(string $yaml, string $key, int $indentation): string
    {
        self::assertSame(1, \preg_match("/^ {{$indentation}}{$key}:\n((?: {" . ($indentation + 1) . ",}.*\n|\n)*)/m", $yaml, $found), $key);

        return $found[1];
    }

    private static function file(): string
    {
        return (string) \file_get_contents(\dirname(__DIR__, 2) . '/compose.yaml');
    }
}
