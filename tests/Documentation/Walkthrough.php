<?php

declare(strict_types=1);

namespace Weft\Tests\Documentation;

use PHPUnit\Framework\Assert;
use Weft\Tests\Timing;

/** Does what a page says, block by block, see {@see Page}. */
final class Walkthrough
{
    private ?BackgroundServer $server = null;
    private string $lastLog = '';

    public function __construct(private readonly Workspace $workspace, private readonly Page $page)
    {
        $workspace->findPorts($page);
    }

    public function run(): void
    {
        foreach ($this->page->blocks as $index => $block) {
            $this->step($block, $this->page->blocks[$index - 1] ?? null, $this->page->blocks[$index + 1] ?? null);
        }
        $this->stopServer();
    }

    private function step(Block $block, ?Block $previous, ?Block $next): void
    {
        match (true) {
            $block->directive === 'skip' => $this->skip($block),
            $block->title !== '' => $this->write($block),
            $block->language === 'php', $block->language === 'go' => $this->fragment($block),
            $block->language === 'sh' && $block->directive === 'server' => $this->serve($block),
            $block->language === 'sh' => $this->check($block, $next !== null && self::isOutput($next) ? $next->code : null),
            $block->language === 'text' && $block->directive === 'log' => $this->log($block),
            $block->language === 'text' => Assert::assertTrue($previous?->language === 'sh' && $previous->directive !== 'server', "{$this->place($block)}: no command prints this; mark it with log or skip"),
            default => null,
        };
    }

    private static function isOutput(Block $block): bool
    {
        return $block->language === 'text' && $block->directive === '' && $block->title === '';
    }

    private function skip(Block $block): void
    {
        Assert::assertNotSame('', $block->argument, "{$this->place($block)}: say why the block is not run");
        $block->language === 'php' && $this->workspace->assertParses('php', $block->code, $this->place($block));
    }

    private function write(Block $block): void
    {
        $this->workspace->file($block->title, $block->code);
        // A template of Blade is no PHP.
        \preg_match('/(?<!\.blade)\.php$/', $block->title) === 1 && $this->workspace->assertParses('php', $block->code, $this->place($block));
    }

    /** Code of another system: it is parsed. */
    private function fragment(Block $block): void
    {
        Assert::assertStringNotContainsString('Weft\\', $block->code, "{$this->place($block)}: code for Weft has a title and is run");
        $this->workspace->assertParses($block->language, $block->code, $this->place($block));
    }

    private function check(Block $block, ?string $prints): void
    {
        $pattern = $prints === null ? null : self::pattern($prints);
        $holds = false;
        $attempt = function () use ($block, $pattern, &$exit, &$output, &$holds): bool {
            [$exit, $output] = $this->workspace->shell($block->code);

            return $holds = $exit === 0 && ($pattern === null || \preg_match($pattern, $output) === 1);
        };
        $block->directive === 'until' ? self::await($attempt) : $attempt();
        Assert::assertTrue($holds, "{$this->place($block)}: exit code $exit\n--- the page says\n$prints\n--- it printed\n$output\n--- the server's log\n{$this->serverLog()}");
    }

    private function serve(Block $block): void
    {
        $this->stopServer();
        $server = $this->server = $this->workspace->serve($block->code);
        $ready = '/' . self::expression($block->argument === '' ? 'listening on' : $block->argument) . '/';
        self::await(fn(): bool => \preg_match($ready, $this->serverLog()) === 1 || !$server->isRunning());
        Assert::assertMatchesRegularExpression($ready, $this->serverLog(), "{$this->place($block)}: {$server->command} is not ready");
    }

    private function log(Block $block): void
    {
        $pattern = '/' . \implode('.*', \array_map(self::expression(...), \explode("\n", \rtrim($block->code)))) . '/s';
        self::await(fn(): bool => \preg_match($pattern, $this->serverLog()) === 1);
        Assert::assertMatchesRegularExpression($pattern, $this->serverLog(), "{$this->place($block)}: the server has not logged this");
    }

    /** As Ctrl-C does. */
    private function stopServer(): void
    {
        if ($this->server !== null) {
            $server = $this->server;
            $this->server = null;
            $exit = $server->stop(\SIGINT);
            $this->lastLog = $this->workspace->asWritten($server->output());
            Assert::assertSame(0, $exit, "{$server->command}\n{$this->lastLog}");
            // A supervisor ends with 0 even if its workers failed.
            Assert::assertDoesNotMatchRegularExpression('/ended with exit code [1-9].*: SIGINT/', $this->lastLog, $server->command);
        }
    }

    private function serverLog(): string
    {
        return $this->server === null ? $this->lastLog : $this->workspace->asWritten($this->server->output());
    }

    /** @param \Closure(): bool $condition */
    private static function await(\Closure $condition): void
    {
        $deadline = \hrtime(true) / 1e9 + Timing::DEADLINE;
        while (!$condition() && \hrtime(true) / 1e9 < $deadline) {
            \usleep(20_000);
        }
    }

    private static function pattern(string $text): string
    {
        return '/^' . \implode('\n', \array_map(self::expression(...), \explode("\n", \rtrim($text)))) . '$/s';
    }

    private static function expression(string $line): string
    {
        return \strtr(\preg_quote(\rtrim($line), '/'), ['…' => '.*?']);
    }

    private function place(Block $block): string
    {
        return \basename($this->page->file) . ":{$block->line}";
    }
}
