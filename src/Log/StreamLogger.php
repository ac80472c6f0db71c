<?php

declare(strict_types=1);

namespace Weft\Log;

use Psr\Log\AbstractLogger;
use Psr\Log\LogLevel;
use Weft\Internal\Printable;
use Weft\Log\Internal\Context;
use Weft\Log\Internal\ExceptionReport;
use Weft\Log\Internal\Message;

/**
 * A PSR-3 logger that writes one record per message to a stream, at once. Times are UTC with milliseconds.
 *
 * In the text format every line of a record after the first is indented by four spaces; an exception under `exception` is
 * printed below with its previous ones. Stacks show the application's frames and count Weft's own. Control characters are
 * escaped in both formats, so that a record cannot look like two or command the terminal it is read in.
 *
 * What comes from outside cannot make a record large: a message has 16 KiB at most, a value 8 KiB, a context 32 KiB and 100
 * elements an array, a stack 50 frames, a chain of exceptions 10. What was longer ends in `… (110000 bytes)`. A placeholder
 * is never replaced by an exception.
 */
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

    /** Loaded with the logger: a process without descriptors, which is what it may have to log, cannot open their files. */
    private const CLASSES = [Printable::class, Context::class, ExceptionReport::class, Message::class];

    private readonly int $least;
    private readonly \DateTimeZone $zone;
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
        // It may be read from a file, too.
        $this->zone = new \DateTimeZone('UTC');
        \array_map(\class_exists(...), self::CLASSES);
    }

    /** To stderr in the format of the supervisor (`weft run --log=json`), else as `WEFT_LOG`, `text` or `json`, says. */
    public static function fromEnvironment(): self
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
     * @param array<array-key, mixed> $context
     */
    public function log($level, $message, array $context = []): void
    {
        if (self::severity((string) $level) < $this->least) {
            return;
        }
        $time = (new \DateTimeImmutable('now', $this->zone))->format('Y-m-d\TH:i:s.v\Z');
        $line = $this->format === Format::Json
            ? self::object($time, (string) $level, (string) $message, $context)
            : self::text($time, (string) $level, (string) $message, $context);
        @\fwrite($this->stream, $line . "\n");
    }

    /** @param array<array-key, mixed> $context */
    private static function object(string $time, string $level, string $message, array $context): string
    {
        $text = Message::of($message, $context)->text;

        return self::json(['time' => $time, 'level' => $level, 'message' => $text] + Context::of($context));
    }

    /** @param array<array-key, mixed> $context what the message has not of it follows as JSON */
    private static function text(string $time, string $level, string $template, array $context): string
    {
        $message = Message::of($template, $context);
        $rest = \array_diff_key($context, $message->filled);
        $exception = $context['exception'] ?? null;
        $stack = '';
        if ($exception instanceof \Throwable) {
            unset($rest['exception']);
            $stack = "\n" . ExceptionReport::text($exception, $message->text);
        }
        $rest = $rest === [] ? '' : ' ' . self::json(Context::of($rest));

        return \sprintf('%s %-7s %s', $time, $level, \str_replace("\n", "\n    ", Printable::text("$message->text$rest" . \rtrim($stack))));
    }

    private static function severity(string $level): int
    {
        $severity = \array_search($level, self::LEVELS, true);
        if ($severity === false) {
            throw new \Psr\Log\InvalidArgumentException("There is no log level \"$level\": " . \implode(', ', self::LEVELS));
        }

        return $severity;
    }

    /**
     * On one line. What a terminal would obey is escaped even where JSON allows it.
     *
     * @param array<array-key, mixed> $fields
     */
    private static function json(array $fields): string
    {
        $json = (string) \json_encode(
            $fields,
            \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_INVALID_UTF8_SUBSTITUTE | \JSON_PARTIAL_OUTPUT_ON_ERROR | \JSON_PRESERVE_ZERO_FRACTION,
        );

        return (string) \preg_replace_callback(Printable::CONTROLS, static fn(array $found): string => $found[0] === "\x7F" ? '\u007f' : \trim((string) \json_encode($found[0]), '"'), $json);
    }
}
