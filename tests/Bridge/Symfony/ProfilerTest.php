<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use PHPUnit\Framework\TestCase;
use Symfony\Component\HttpFoundation\Request;
use Weft\Bridge\Symfony\Internal\Shared;

require_once __DIR__ . '/autoload.php';

/** The panel of Symfony's profiler. */
final class ProfilerTest extends TestCase
{
    private string $directory = '';

    protected function tearDown(): void
    {
        $this->directory === '' || \exec('rm -rf ' . \escapeshellarg($this->directory));
    }

    public function testThePanelShowsPoolsAndTheDepthOfQueuesWithoutPasswords(): void
    {
        $library = '/usr/share/php/Symfony/Bundle/WebProfilerBundle/autoload.php';
        if (!\is_file($library)) {
            self::markTestSkipped('WebProfilerBundle is not installed: scripts/setup test');
        }
        require_once $library;
        require_once '/usr/share/php/Symfony/Bundle/TwigBundle/autoload.php';
        $this->directory = \sys_get_temp_dir() . '/weft-profiler-' . \bin2hex(\random_bytes(6));
        \mkdir($this->directory);
        $kernel = new ProfilerKernel($this->directory);
        Shared::serves(static fn (): array => ['size' => 3, 'in_use' => 2, 'idle' => 1, 'waiting' => 0]);
        $request = Request::create('/page');
        $response = $kernel->handle($request);
        self::assertSame('page', $response->getContent());
        $kernel->terminate($request, $response);

        $panel = (string) $kernel->handle(Request::create("/_profiler/{$response->headers->get('x-debug-token')}?panel=weft"))->getContent();

        $rows = \preg_match_all('~<tr><th>([^<]+)</th>((?:<td>[^<]*</td>)+)</tr>~', $panel, $found) > 0 ? \array_combine($found[1], $found[2]) : [];
        $database = \parse_url((string) \getenv('DATABASE_URL'));
        self::assertIsArray($database);
        self::assertSame('<td>7</td><td>0</td><td>1</td><td>0</td>', $rows[($database['host'] ?? '') . ($database['path'] ?? '')] ?? null, $panel);
        self::assertSame('<td>3</td><td>2</td><td>1</td><td>0</td>', $rows['kernels'] ?? null);
        self::assertSame('<td>1</td>', $rows['profiled'] ?? null);
        self::assertStringNotContainsString((string) \getenv('DATABASE_URL'), $panel);
    }
}
