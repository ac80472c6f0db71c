<?php

declare(strict_types=1);

namespace Weft\Tests\Log;

use PHPUnit\Framework\TestCase;

/** What the library hands to a logger: a template that nobody's input is in, so that no `{placeholder}` of theirs is filled. */
final class TemplatesTest extends TestCase
{
    private const METHODS = ['log', 'debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency', 'warn'];

    public function testNoTemplateOfTheLibraryHasAValueInIt(): void
    {
        $found = [];
        $calls = 0;
        $files = new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator(\dirname(__DIR__, 2) . '/src', \FilesystemIterator::SKIP_DOTS));
        foreach ($files as $file) {
            foreach (self::templates((string) file_get_contents((string) $file)) as $line => $template) {
                $calls++;
                if (self::hasValue($template)) {
                    $found[] = "$file:$line";
                }
            }
        }

        self::assertSame([], $found);
        self::assertGreaterThan(30, $calls);
    }

    public function testTheSearchFindsThem(): void
    {
        $joined = ['"a $b"', '"a {$b->c()}"', '"a " . $b', '$b . "a"', '"a" . f($b)', '"a" . $b->c()'];
        $alone = ['$b->c()', '$b?->c()', '$b->c', 'f($b)', '(string) f($b)'];
        foreach ([...$joined, ...$alone] as $template) {
            $line = "<?php\n\$this->logger->error($template, ['x' => 1]);";
            self::assertTrue(self::hasValue(self::templates($line)[2]), $template);
        }
        // The last two pass on the template of their caller.
        foreach (["A::B . ' c {d}'", "\$a->isB() ? 'c' : 'd'", '$message', '(string) $message'] as $template) {
            $line = "<?php\n\$this->log->log(\$level, $template, ['d' => \"\$d\"]);";
            self::assertFalse(self::hasValue(self::templates($line)[2]), $template);
        }
    }

    /** @return array<int, list<string|array{int, string, int}>> tokens of the message of each call, by its line */
    private static function templates(string $code): array
    {
        $tokens = array_values(array_filter(token_get_all($code), static fn(mixed $token): bool => $token[0] !== T_WHITESPACE && $token[0] !== T_COMMENT));
        $found = [];
        foreach ($tokens as $at => $token) {
            $isCall = \is_array($token) && $token[0] === T_STRING && \in_array($token[1], self::METHODS, true) && ($tokens[$at + 1] ?? '') === '(';
            $receiver = $tokens[$at - 2][1] ?? '';
            if ($isCall && ($tokens[$at - 1][0] ?? '') === T_OBJECT_OPERATOR && \in_array($receiver, ['logger', '$logger', 'log', '$log', 'notices'], true)) {
                $arguments = self::arguments(\array_slice($tokens, $at + 2));
                $found[$token[2]] = $arguments[$token[1] === 'log' ? 1 : 0];
            }
        }

        return $found;
    }

    /**
     * @param list<string|array{int, string, int}> $tokens
     *
     * @return list<list<string|array{int, string, int}>>
     */
    private static function arguments(array $tokens): array
    {
        $arguments = [[]];
        $depth = 0;
        foreach ($tokens as $token) {
            $text = \is_array($token) ? $token[1] : $token;
            $depth += match (true) {
                \in_array($text, ['(', '[', '{', '{$', '${'], true) => 1,
                \in_array($text, [')', ']', '}'], true) => -1,
                default => 0,
            };
            if ($depth < 0) {
                return $arguments;
            }
            if ($depth === 0 && $text === ',') {
                $arguments[] = [];
            } else {
                $arguments[array_key_last($arguments)][] = $token;
            }
        }

        return $arguments;
    }

    /** @param list<string|array{int, string, int}> $template */
    private static function hasValue(array $template): bool
    {
        $kinds = array_map(static fn(string|array $token): mixed => $token[0], $template);
        $isExpression = array_intersect($kinds, ['(', T_OBJECT_OPERATOR, T_NULLSAFE_OBJECT_OPERATOR]) !== [];
        if ($isExpression && !\in_array(T_CONSTANT_ENCAPSED_STRING, $kinds, true)) {
            // The value of a property or of a call, without any text of the library.
            return true;
        }
        foreach ($template as $at => $token) {
            $joins = ($template[$at - 1] ?? '') === '.' || ($template[$at + 1] ?? '') === '.';
            // A double quote that opens text with variables; a variable, or a call, that is joined to text.
            if ($token === '"' || $joins && \is_array($token) && ($token[0] === T_VARIABLE || $token[0] === T_STRING && ($template[$at + 1] ?? '') === '(')) {
                return true;
            }
        }

        return false;
    }
}
