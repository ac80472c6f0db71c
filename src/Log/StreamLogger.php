<?php

declare(strict_types=1);

namespace Weft\Log;

use Psr\Log\AbstractLogger;
use Psr\Log\LogLevel;
use Weft\Internal\ErrorDocumentation;
use Weft\Internal\Origin;
use Weft\Internal\Printable;
use Weft\Log\Internal\Context;
use Weft\Log\Internal\ExceptionReport;
use Weft\Log\Internal\Message;
use Weft\Runtime\Trace;

/**
 * A PSR-3 logger that writes one record per message to a stream, unbuffered. Times are UTC with milliseconds.
 *
 * In the text format every line of a record after the first is indented by four spaces; an exception under `exception` is
 * printed below with its previous ones. Stacks show the frames of the application and count those of Weft; `Help:` names
 * the page about an exception of Weft. Control characters are
 * escaped in both formats, so that a record can neither forge another one nor control a terminal.
 *
 * In the JSON format, a record has `time`, `level`, `message` and, while a request or message is handled, `trace_id` and `span_id`
 * ({@see Trace}), then the context. A context key of the same name becomes `context.message` and so on. INF and NAN, which JSON does not
 * have, are text.
 *
 * Records are bounded: a message to 16 KiB, a value to 8 KiB, a context to 32 KiB and 100 elements per array, a stack to 50 frames, a
 * chain of exceptions to 10. Longer text ends in `… (110000 bytes)`. A placeholder is never replaced by an exception.
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

    /** Classes loaded with the logger: a process without free descriptors, which it may have to log, cannot open their files. */
    private const CLASSES = [Printable::class, Context::class, ErrorDocumentation::class, ExceptionReport::class, Message::class, Origin::class, Trace::class];

    private readonly int $least;
    private readonly \DateTimeZone $zone;
    /** @var resource */
    private readonly mixed $stream;

    /**
     * @param resource|null $stream null is stderr, or the log of PHP-FPM
     * @param Format $format text for people, or JSON for programs, one object per line
     * @param string $level the least severe PSR-3 level to write
     */
    public function __construct(
        mixed $stream = null,
        private readonly Format $format = Format::Text,
        string $level = LogLevel::INFO,
    ) {
        // Only the CLI defines the constant.
        $this->stream = $stream ?? (\defined('STDERR') ? \STDERR : \fopen('php://stderr', 'w'));
        $this->least = self::severity($level);
        // The level may come from a file.
        $this->zone = new \DateTimeZone('UTC');
        \array_map(\class_exists(...), self::CLASSES);
    }

    /**
     * Writes to stderr as `WEFT_LOG` (`text` or `json`) and `WEFT_LOG_LEVEL` say, which workers of `weft run` have from its options.
     *
     * @param Format|null $format instead of `WEFT_LOG`
     * @param string|null $level the least severe PSR-3 level to write, instead of `WEFT_LOG_LEVEL`
     *
     * @throws \ValueError `WEFT_LOG` or `WEFT_LOG_LEVEL` is used and has an unknown value
     */
    public static function fromEnvironment(?Format $format = null, ?string $level = null): self
    {
        return new self(
            format: $format ?? Format::from(self::variable('WEFT_LOG', \array_map(static fn(Format $format): string => $format->value, Format::cases())) ?? Format::Text->value),
            level: $level ?? self::variable('WEFT_LOG_LEVEL', self::LEVELS) ?? LogLevel::INFO,
        );
    }

    /**
     * @param non-empty-list<string> $allowed
     * @return string|null null where it is not set
     */
    private static function variable(string $name, array $allowed): ?string
    {
        $value = (string) \getenv($name);
        if ($value === '' || \in_array($value, $allowed, true)) {
            return $value === '' ? null : $value;
        }
        throw new \ValueError("{$name} must be " . \implode(', ', \array_slice($allowed, 0, -1)) . ' or ' . $allowed[\count($allowed) - 1] . ", got \"{$value}\"");
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

        return self::json(self::merged(['time' => $time, 'level' => $level, 'message' => $text] + self::trace(), Context::of($context)));
    }

    /**
     * @param array<string, string> $fields the record's own
     * @param array<array-key, mixed> $context keys that the record has already are prefixed, unless the value is the same
     *
     * @return array<array-key, mixed>
     */
    private static function merged(array $fields, array $context): array
    {
        $all = $fields;
        foreach ($context as $key => $value) {
            if (isset($fields[$key]) && $fields[$key] === $value) {
                continue;
            }
            if (isset($fields[$key])) {
                do {
                    $key = "context.{$key}";
                } while (\array_key_exists($key, $context));
            }
            $all[$key] = $value;
        }

        return $all;
    }

    /** @return array<string, string> */
    private static function trace(): array
    {
        $trace = Trace::current();

        return $trace === null ? [] : ['trace_id' => $trace->traceId(), 'span_id' => $trace->spanId()];
    }

    /** @param array<array-key, mixed> $context keys that the message does not contain follow as JSON, except those without a value */
    private static function text(string $time, string $level, string $template, array $context): string
    {
        $message = Message::of($template, $context);
        $rest = \array_filter(\array_diff_key($context, $message->filled), static fn(mixed $value): bool => $value !== null);
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
            throw new \Psr\Log\InvalidArgumentException("Unknown log level \"$level\": " . \implode(', ', self::LEVELS));
        }

        return $severity;
    }

    /**
     * On one line. Control characters are escaped even where JSON allows them.
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
