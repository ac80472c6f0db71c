<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Routing;

use Weft\Http\InvalidRouteError;
use Weft\Internal\Number;

/**
 * The path of a route, such as `/people/{id:\d+}`: matches paths, and builds them.
 *
 * @internal
 */
final class PathPattern
{
    /** `{name}` or `{name:expression}`; the expression may have braces of its own, one deep. */
    private const NAME = '/\{([A-Za-z_]\w*)(?::((?:[^{}]|\{[^{}]*\})+))?\}/';
    /**
     * What a path cannot contain, and what to write instead. RFC 3986, section 3.3, excludes braces, angle and square brackets, `?` and
     * `#`; it allows `:` and `*`, but at the beginning of a segment, or as all of it, they are parameters of other routers. `|`, `^`,
     * the backtick and letters beyond ASCII are text, which clients percent-encode ({@see EncodedPath}).
     */
    private const FOREIGN = [
        '~\{(\w+)\?\}~' => 'no parameter is optional: add a route for each of the two paths',
        '~\{(\w+)<([^<>]*)>\??\}~' => 'write {$1:$2}',
        '~[{}]~' => 'write {name} or {name:expression}, a name of letters, digits and _',
        '~<(?:\w+:)?(\w+)>~' => 'write {$1}',
        '~(?<=/):(\w+)(?=/|$)~' => 'write {$1}',
        '~(?<=/)\*{1,2}(?=/|$)~' => 'write {path:.*} for the rest of the path, {name} for one segment',
        '~\[.*\]~s' => 'no part is optional: add a route for each path',
        '~[?#]~' => 'a path has no query and no fragment; a handler gets query parameters by #[Query]',
        '~\\\\~' => 'write an expression in braces, {name:expression}, and %5C for a backslash',
        '~%(?![0-9A-Fa-f]{2})~' => 'write %25 for a percent sign',
        '~[\[\]<>"\x00-\x20\x7F]~' => 'percent-encode what is not allowed in a path',
    ];
    private const ESCAPE = '\\\\.';
    private const CHARACTER_CLASS = '\[\^?\]?(?:\\\\.|\[:\^?\w+:\]|[^\]\\\\])*+\]';
    private const SEGMENT = '[^/]+';
    /** Expressions that cannot match a slash: no dot, negated class or negated escape, which could, and no slash. */
    private const WITHOUT_SLASH = '~^(?:\\\\[dwshv.+*?()\[\]{}|$^-]|[^\\\\./\[^]|\[(?:[^\]\\\\/^]|\\\\[dws.-])(?:[^\]\\\\/]|\\\\[dws.-])*\])+$~';

    /**
     * @param list<string> $names
     * @param list<string|array{string, string}> $parts percent-encoded text, or name and expression of a parameter
     */
    private function __construct(
        public readonly string $path,
        public readonly string $expression,
        public readonly array $names,
        private readonly array $parts,
    ) {
    }

    /** @throws InvalidRouteError */
    public static function of(string $path): self
    {
        if (!\str_starts_with($path, '/')) {
            throw new InvalidRouteError("The path of a route must begin with /, got \"$path\"");
        }
        if (\preg_match('//u', $path) !== 1) {
            throw new InvalidRouteError('The path "' . \mb_scrub($path, 'UTF-8') . '" is not UTF-8, which clients send (RFC 3987, section 3.1)');
        }
        self::refuseForeign($path);
        $expression = '';
        $names = $parts = [];
        $end = 0;
        \preg_match_all(self::NAME, $path, $found, \PREG_SET_ORDER | \PREG_OFFSET_CAPTURE);
        /** @var array{array{string, int}, array{string, int}, 2?: array{string, int}} $match */
        foreach ($found as $match) {
            [$whole, $start] = $match[0];
            $text = EncodedPath::of(\substr($path, $end, $start - $end));
            $constraint = self::constraint($match[2][0] ?? self::SEGMENT);
            self::refuseLetters($path, $match[1][0], $constraint);
            $names[] = $match[1][0];
            $parts[] = $text;
            $parts[] = [$match[1][0], $constraint];
            $expression .= \preg_quote($text, '~') . "($constraint)";
            $end = $start + \strlen($whole);
        }
        $text = EncodedPath::of(\substr($path, $end));
        $parts[] = $text;
        $expression .= \preg_quote($text, '~');
        if (@\preg_match("~^$expression$~D", '') === false || \count(\array_unique($names)) !== \count($names)) {
            throw new InvalidRouteError("The path \"$path\" is malformed: write {name} or {name:expression}, each name once");
        }

        return new self($path, $expression, $names, $parts);
    }

    /** What looks like a parameter and is none would match only itself, so that all requests were answered 404. */
    private static function refuseForeign(string $path): void
    {
        $text = (string) \preg_replace(self::NAME, '.', $path);
        foreach (self::FOREIGN as $expression => $advice) {
            $found = [];
            if (\preg_match($expression, $text, $found) === 1) {
                throw new InvalidRouteError("The path \"$path\" contains \"{$found[0]}\": " . \strtr($advice, ['$1' => $found[1] ?? '', '$2' => $found[2] ?? '']));
            }
        }
    }

    /** An expression would match no request: paths are percent-encoded. */
    private static function refuseLetters(string $path, string $name, string $constraint): void
    {
        $found = [];
        if (\preg_match('/[^\x00-\x7F]+/', $constraint, $found) === 1) {
            $encoded = \rawurlencode($found[0]);
            $problem = "contains \"{$found[0]}\": expressions match the percent-encoded path, write (?:$encoded)";
            throw new InvalidRouteError("The expression of {{$name}} in the path \"$path\" $problem");
        }
    }

    public function matches(string $path): bool
    {
        return \preg_match("~^{$this->expression}$~D", EncodedPath::of($path)) === 1;
    }

    /** @return array<string, string> expressions of its parameters */
    public function constraints(): array
    {
        $constraints = [];
        foreach ($this->parts as $part) {
            if (\is_array($part)) {
                $constraints[$part[0]] = $part[1];
            }
        }

        return $constraints;
    }

    public static function isSegment(string $constraint): bool
    {
        return $constraint === self::SEGMENT;
    }

    /** The percent-encoded path with the parameters as `{name}`, without their expressions. */
    public function template(): string
    {
        return \implode('', \array_map(static fn(string|array $part): string => \is_array($part) ? "{{$part[0]}}" : $part, $this->parts));
    }

    /** The path with `{}` for each parameter: the same for paths whose parameters differ only in their names and expressions. */
    public function unnamed(): string
    {
        return \implode('', \array_map(static fn(string|array $part): string => \is_array($part) ? '{}' : $part, $this->parts));
    }

    /**
     * The path with values for its parameters, percent-encoded.
     *
     * @param array<array-key, mixed> $values others than the parameters become the query
     *
     * @throws \ValueError a value is missing, or does not match its expression
     */
    public function build(array $values): string
    {
        $path = '';
        foreach ($this->parts as $part) {
            $path .= \is_array($part) ? $this->segment($part[0], $part[1], $values[$part[0]] ?? null) : $part;
        }
        if (\preg_match('~(?:^|/)\.\.?(?:/|$)~D', $path) === 1) {
            $reason = 'clients remove the segments "." and ".." before they send it (RFC 3986, section 5.2.4)';
            throw new \ValueError("The path \"{$this->path}\" would be \"$path\": $reason");
        }
        $query = $this->queryString($this->query(\array_diff_key($values, \array_flip($this->names))));

        return $query === '' ? $path : "$path?$query";
    }

    /**
     * Lists as typed handlers and the OpenAPI document have them, `tags=a&tags=b`; other arrays as `parse_str()` reads them.
     *
     * @param array<array-key, mixed> $query
     */
    private function queryString(array $query): string
    {
        $pairs = [];
        foreach ($query as $name => $value) {
            $isList = \is_array($value) && \array_is_list($value) && \array_filter($value, \is_array(...)) === [];
            foreach ($isList ? $value : [$value] as $one) {
                $pairs[] = \http_build_query([$name => $one], '', '&', \PHP_QUERY_RFC3986);
            }
        }

        return \implode('&', \array_filter($pairs, static fn(string $pair): bool => $pair !== ''));
    }

    /**
     * The values as text: `http_build_query()` would take the properties of an object for an array.
     *
     * @param array<array-key, mixed> $values
     *
     * @return array<array-key, mixed>
     */
    private function query(array $values): array
    {
        $query = [];
        foreach ($values as $name => $value) {
            $query[$name] = match (true) {
                $value === null => null,
                \is_array($value) => $this->query($value),
                default => self::text($value) ?? throw new \ValueError("The path \"{$this->path}\" cannot have the query parameter \"$name\", got " . \get_debug_type($value)),
            };
        }

        return $query;
    }

    /** As handlers take it; null for a value that is no text. */
    private static function text(mixed $value): ?string
    {
        return match (true) {
            $value instanceof \BackedEnum => (string) $value->value,
            \is_bool($value) => $value ? '1' : '0',
            \is_float($value) => Number::text($value),
            \is_string($value), \is_int($value), $value instanceof \Stringable => (string) $value,
            default => null,
        };
    }

    private function segment(string $name, string $constraint, mixed $value): string
    {
        $text = self::text($value) ?? throw new \ValueError("The path \"{$this->path}\" needs a value for {{$name}}, got " . \get_debug_type($value));
        $encoded = \rawurlencode($text);
        $candidates = [\str_replace('%2F', '/', $encoded), $encoded];
        foreach ($candidates as $candidate) {
            if (\preg_match("~^(?:$constraint)$~D", $candidate) === 1) {
                return $candidate;
            }
        }
        throw new \ValueError("The path \"{$this->path}\" has no place for {{$name}} = \"$text\", which does not match $constraint");
    }

    /**
     * Whether every path that `$other` matches is matched by this one as well. False where that cannot be told.
     */
    public function covers(self $other): bool
    {
        if ($this->expression === $other->expression) {
            return true;
        }
        $ours = self::segments($this->parts);
        $theirs = self::segments($other->parts);
        foreach ($ours as $index => $segment) {
            $rest = \array_slice($theirs, $index);
            if ($index === \count($ours) - 1 && \is_array($segment) && \in_array($segment[1], ['.*', '.+'], true)) {
                return $rest !== [] && ($segment[1] === '.*' || !self::mayBeEmpty($rest));
            }
            if ($rest === [] || !self::segmentCovers($segment, $rest[0])) {
                return false;
            }
        }

        return \count($ours) === \count($theirs);
    }

    /**
     * @param list<string|array{string, string}|null> $segments
     */
    private static function mayBeEmpty(array $segments): bool
    {
        $first = $segments[0];

        return \count($segments) === 1 && ($first === '' || $first === null || \is_array($first) && \preg_match("~^(?:{$first[1]})$~D", '') === 1);
    }

    /**
     * @param string|array{string, string}|null $ours
     * @param string|array{string, string}|null $theirs
     */
    private static function segmentCovers(string|array|null $ours, string|array|null $theirs): bool
    {
        return match (true) {
            $ours === null, $theirs === null => false,
            \is_string($ours) => $ours === $theirs,
            \is_string($theirs) => \preg_match("~^(?:{$ours[1]})$~D", $theirs) === 1,
            $ours[1] === $theirs[1] => true,
            default => $ours[1] === self::SEGMENT && self::isWithinSegment($theirs[1]),
        };
    }

    /** Whether it matches neither a slash nor nothing, as far as its text tells. */
    private static function isWithinSegment(string $constraint): bool
    {
        return \preg_match(self::WITHOUT_SLASH, $constraint) === 1 && \preg_match("~^(?:$constraint)$~D", '') === 0;
    }

    /**
     * @param list<string|array{string, string}> $parts
     *
     * @return list<string|array{string, string}|null> text, a parameter, or null for a segment that has both
     */
    private static function segments(array $parts): array
    {
        $segments = [''];
        foreach ($parts as $part) {
            $last = \array_key_last($segments);
            if (\is_array($part)) {
                $segments[$last] = $segments[$last] === '' ? $part : null;
                continue;
            }
            foreach (\explode('/', $part) as $index => $text) {
                if ($index > 0) {
                    $segments[] = $text;
                } elseif ($text !== '') {
                    $segments[$last] = $segments[$last] === '' ? $text : null;
                }
            }
        }

        return $segments;
    }

    /** Capturing groups of a constraint must not shift those of the parameters, and the delimiter must not end it. */
    private static function constraint(string $constraint): string
    {
        $patterns = [
            '/(?:' . self::ESCAPE . '|' . self::CHARACTER_CLASS . ')(*SKIP)(*FAIL)|\((?![?*])|\(\?(?:P?<\w+>|\'\w+\')/s' => '(?:',
            '/' . self::ESCAPE . '(*SKIP)(*FAIL)|~/s' => '\\\~',
        ];

        return (string) \preg_replace(\array_keys($patterns), $patterns, $constraint);
    }
}
