<?php

declare(strict_types=1);

namespace Weft\Log;

use Psr\Log\AbstractLogger;
use Psr\Log\LogLevel;

/** A PSR-3 logger that writes one line per message to a stream, at once. Times are UTC with milliseconds. */
final class StreamLogger extends AbstractLogger
{
    private const LEVELS = [
        LogLevel::DEBUG,
        LogLevel::INFO,
        LogLevel::NOTICE,
        LogLevel::WARNING,
        LogLevel::ERROR,
        LogLevel::CRITICAL,
        LogLevel::ALERT,
        LogLevel::EMERGENCY,
    ];

    private readonly int $least;
    /** @var resource */
    private readonly mixed $stream;

    /**
     * @param resource|null $stream null is stderr, in PHP-FPM its log
     * @param string $level the least severe PSR-3 level that is written
     */
    public function __construct(
        mixed $stream = null,
        private readonly Format $format = Format::Text,
        string $level = LogLevel::INFO,
    ) {
        // Only the command line has the constant.
        $this->stream = $stream ?? (\defined('STDERR') ? \STDERR : \fopen('php://stderr', 'w'));
        $this->least = self::severity($level);
    }

    /** To stderr in the format of the supervisor (`weft run --log=json`), else as `WEFT_LOG`, `text` or `json`, says. */
    public static function ofEnvironment(): self
    {
        $level = (string) \getenv('WEFT_LOG_LEVEL');

        return new self(
            format: Format::tryFrom((string) \getenv('WEFT_LOG')) ?? Format::Text,
            level: \in_array($level, self::LEVELS, true) ? $level : LogLevel::INFO,
        );
    }

    /**
     * @param mixed $level
     * @param string|\Stringable $message
     * @param array<string, mixed> $context
     */
    public function log($level, $message, array $context = []): void
    {
        if (self::severity((string) $level) < $this->least) {
            return;
        }
        $time = (new \DateTimeImmutable('now', new \DateTimeZone('UTC')))->format('Y-m-d\TH:i:s.v\Z');
        $text = self::interpolated((string) $message, $context);
        $exception = $context['exception'] ?? null;
        $context = \array_map(self::plain(...), $context);
        $line = match ($this->format) {
            Format::Json => self::json(['time' => $time, 'level' => $level, 'message' => $text] + $context),
            Format::Text => self::text($time, (string) $level, self::traced($text, $exception), \array_filter(
                $exception instanceof \Throwable ? \array_diff_key($context, ['exception' => true]) : $context,
                static fn(string $name): bool => !\str_contains((string) $message, "{{$name}}"),
                \ARRAY_FILTER_USE_KEY,
            )),
        };
        @\fwrite($this->stream, $line . "\n");
    }

    /** @param array<string, mixed> $rest of the context, what the message does not contain */
    private static function text(string $time, string $level, string $message, array $rest): string
    {
        $rest = $rest === [] ? '' : ' ' . self::json($rest);

        return \sprintf('%s %-7s %s%s', $time, $level, \str_replace("\n", "\n    ", $message), $rest);
    }

    private static function traced(string $message, mixed $exception): string
    {
        return $exception instanceof \Throwable ? "$message\n{$exception->getTraceAsString()}" : $message;
    }

    private static function severity(string $level): int
    {
        $severity = \array_search($level, self::LEVELS, true);
        if ($severity === false) {
            throw new \Psr\Log\InvalidArgumentException("There is no log level \"$level\": " . \implode(', ', self::LEVELS));
        }

        return $severity;
    }

    /** @param array<string, mixed> $context */
    private static function interpolated(string $message, array $context): string
    {
        if (!\str_contains($message, '{')) {
            return $message;
        }
        $values = [];
        foreach ($context as $name => $value) {
            if (\is_scalar($value) || $value instanceof \Stringable) {
                $values["{{$name}}"] = \is_bool($value) ? \var_export($value, true) : (string) $value;
            }
        }

        return \strtr($message, $values);
    }

    /** What JSON can carry. */
    private static function plain(mixed $value): mixed
    {
        return match (true) {
            $value instanceof \DateTimeInterface => $value->format(\DATE_RFC3339_EXTENDED),
            $value instanceof \Stringable => (string) $value,
            \is_resource($value) => \get_debug_type($value),
            default => $value,
        };
    }

    /** @param array<string, mixed> $fields */
    private static function json(array $fields): string
    {
        return (string) \json_encode(
            $fields,
            \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_INVALID_UTF8_SUBSTITUTE | \JSON_PARTIAL_OUTPUT_ON_ERROR | \JSON_PRESERVE_ZERO_FRACTION,
        );
    }
}
