<?php

declare(strict_types=1);

namespace Weft\Tests\Examples;

use PhpParser\Node;
use PhpParser\Node\Expr;
use PhpParser\NodeFinder;
use PhpParser\Parser;
use PhpParser\ParserFactory;

/**
 * Checks PHP blocks of a page against the library: they parse, and what they name of Weft exists. That is classes, functions, constants,
 * named arguments, and the methods of variables whose class follows from `new`, a parameter's type or a method's return type. Names that
 * are not Weft's belong to the application of the example and are not checked.
 *
 * Blocks are often pieces of a class, and `…` stands for what is left out.
 */
final class DocumentedCode
{
    /** Variables that mean the same on every page, where a page does not say otherwise. */
    private const VARIABLES = [
        'app' => \Weft\App::class,
        'bus' => \Weft\Bus\Bus::class,
        'context' => \Weft\Bus\Context::class,
        'database' => \Weft\Sql\Database::class,
        'db' => \Weft\Sql\Database::class,
        'locks' => \Weft\Lock\Locks::class,
        'request' => \Weft\Http\Request::class,
        'routes' => \Weft\Http\Router::class,
        'transaction' => \Weft\Sql\Transaction::class,
        'tx' => \Weft\Sql\Transaction::class,
    ];
    /** What a block may be a piece of. */
    private const FRAMES = ['%s', "class Block {\n%s\n}", "abstract class Block {\n%s;\n}", 'class Block { public function block() { %s } }', "return [%s];"];

    private readonly Parser $parser;
    /** @var array<string, list<class-string>> public classes of Weft by short name */
    private array $known = [];
    /** @var array<string, string> full names by alias, of the page so far */
    private array $imports = [];
    /** @var array<string, true> classes that the page declares itself */
    private array $declared = [];
    /** @var array<string, class-string|null> */
    private array $variables = [];
    /** @var list<string> */
    private array $problems = [];

    /** @param list<class-string> $classes the public classes of Weft */
    public function __construct(array $classes)
    {
        $factory = new ParserFactory();
        // Version 4 of the parser, which Debian 12 has, and version 5 differ here alone.
        $this->parser = \method_exists($factory, 'createForHostVersion') ? $factory->createForHostVersion() : $factory->create(1);
        foreach ($classes as $class) {
            $this->known[\substr((string) \strrchr($class, '\\'), 1)][] = $class;
        }
    }

    /** @return list<array{int, string}> line of the block and its code */
    public static function blocks(string $page): array
    {
        $blocks = [];
        \preg_match_all('/^( *)```php[^\n]*\n(.*?)^\1```$/ms', $page, $found, \PREG_SET_ORDER | \PREG_OFFSET_CAPTURE);
        foreach ($found as $block) {
            $blocks[] = [\substr_count($page, "\n", 0, $block[0][1]) + 1, (string) \preg_replace('/^' . $block[1][0] . '/m', '', $block[2][0])];
        }

        return $blocks;
    }

    /**
     * @param list<array{int, string}> $blocks of one page, in order
     *
     * @return list<string> problems
     */
    public function problems(string $page, array $blocks): array
    {
        [$this->imports, $this->declared, $this->variables, $this->problems] = [[], [], self::VARIABLES, []];
        $trees = [];
        foreach ($blocks as [$line, $code]) {
            $tree = $this->parsed($code);
            if (\is_string($tree)) {
                $this->problems[] = "$page:$line: $tree";
                continue;
            }
            $trees[$line] = $tree;
            foreach ((new NodeFinder())->findInstanceOf($tree, Node\Stmt\ClassLike::class) as $class) {
                $this->declared[(string) $class->name] = true;
            }
        }
        foreach ($trees as $line => $tree) {
            $before = \count($this->problems);
            $this->walk($tree);
            for ($at = $before; $at < \count($this->problems); $at++) {
                $this->problems[$at] = "$page:$line: {$this->problems[$at]}";
            }
        }

        return $this->problems;
    }

    /** @return list<Node>|string the tree, or why it does not parse */
    private function parsed(string $code): array|string
    {
        $code = (string) \preg_replace('/^(#!.*\n)?<\?php\s/', '', $code);
        $whole = $this->framed($code);
        if (\is_array($whole)) {
            return $whole;
        }
        // Pieces of different kinds, such as a method and the call of it, are apart by an empty line.
        $trees = [];
        $rest = '';
        foreach (\preg_split('/\n\n/', $code) ?: [] as $piece) {
            $rest .= "$piece\n\n";
            $tree = $this->framed($rest);
            if (\is_array($tree)) {
                [$trees, $rest] = [[...$trees, ...$tree], ''];
            }
        }

        return $rest === '' ? $trees : $whole;
    }

    /** @return list<Node>|string */
    private function framed(string $code): array|string
    {
        $error = '';
        foreach (self::FRAMES as $frame) {
            try {
                return \array_values($this->parser->parse('<?php ' . \str_replace('%s', $code, $frame)) ?? []);
            } catch (\PhpParser\Error $failure) {
                $error = $error ?: $failure->getMessage();
            }
        }

        return $error;
    }

    /** @param array<mixed>|Node $nodes */
    private function walk(array|Node $nodes): void
    {
        foreach (\is_array($nodes) ? $nodes : [$nodes] as $node) {
            if (\is_array($node)) {
                $this->walk($node);
            } elseif ($node instanceof Node) {
                $this->enter($node);
                foreach ($node->getSubNodeNames() as $name) {
                    $child = $node->$name;
                    if (\is_array($child) || $child instanceof Node) {
                        $this->walk($child);
                    }
                }
                if ($node instanceof Expr\Assign && $node->var instanceof Expr\Variable && \is_string($node->var->name)) {
                    $this->variables[$node->var->name] = $this->typeOf($node->expr);
                }
            }
        }
    }

    private function enter(Node $node): void
    {
        match (true) {
            $node instanceof Node\Stmt\Use_, $node instanceof Node\Stmt\GroupUse => $this->import($node),
            $node instanceof Node\Param => $this->parameter($node),
            $node instanceof Node\Stmt\Foreach_ => $this->forget($node->valueVar),
            $node instanceof Expr\New_ && $node->class instanceof Node\Name => $this->construction($node->class, $node->args),
            $node instanceof Node\Attribute => $this->construction($node->name, $node->args),
            $node instanceof Expr\StaticCall && $node->class instanceof Node\Name && $node->name instanceof Node\Identifier => $this->staticCall($node),
            $node instanceof Expr\ClassConstFetch && $node->class instanceof Node\Name && $node->name instanceof Node\Identifier => $this->constant($node),
            $node instanceof Expr\MethodCall && $node->name instanceof Node\Identifier, $node instanceof Expr\NullsafeMethodCall && $node->name instanceof Node\Identifier => $this->methodCall($node),
            $node instanceof Expr\FuncCall && $node->name instanceof Node\Name => $this->functionCall($node),
            $node instanceof Node\Name => $this->name($node),
            default => null,
        };
    }

    private function import(Node\Stmt\Use_|Node\Stmt\GroupUse $statement): void
    {
        $prefix = $statement instanceof Node\Stmt\GroupUse ? $statement->prefix->toString() . '\\' : '';
        $type = $statement->type;
        foreach ($statement->uses as $use) {
            $name = $prefix . $use->name->toString();
            $isFunction = Node\Stmt\Use_::TYPE_FUNCTION === ($type === Node\Stmt\Use_::TYPE_UNKNOWN ? $use->type : $type);
            if ($isFunction) {
                \str_starts_with($name, 'Weft\\') && !\function_exists($name) && $this->problems[] = "there is no function $name()";
            } else {
                $this->imports[(string) $use->getAlias()] = $name;
                $this->mustExist($name);
            }
        }
    }

    private function parameter(Node\Param $parameter): void
    {
        if ($parameter->var instanceof Expr\Variable && \is_string($parameter->var->name)) {
            $type = $parameter->type instanceof Node\NullableType ? $parameter->type->type : $parameter->type;
            $this->variables[$parameter->var->name] = $type instanceof Node\Name ? $this->only($type) : ($type === null ? self::VARIABLES[$parameter->var->name] ?? null : null);
        }
    }

    private function forget(Expr $variable): void
    {
        if ($variable instanceof Expr\Variable && \is_string($variable->name)) {
            $this->variables[$variable->name] = null;
        }
    }

    private function name(Node\Name $name): void
    {
        $text = $name->toString();
        // A name that begins with a small letter is a function.
        if (\str_starts_with($text, 'Weft\\') && \ctype_upper((string) \substr((string) \strrchr($text, '\\'), 1, 1))) {
            $this->mustExist($text);
        }
    }

    private function mustExist(string $class): void
    {
        if (\str_starts_with($class, 'Weft\\') && !\str_starts_with($class, 'Weft\\Examples') && self::exists($class) === false && !self::isNamespace($class)) {
            $this->problems[] = "there is no class $class";
        }
    }

    private static function isNamespace(string $name): bool
    {
        return \is_dir(\dirname(__DIR__, 2) . '/src/' . \strtr(\substr($name, \strlen('Weft\\')), '\\', '/'));
    }

    /** @param array<Node\Arg|Node\VariadicPlaceholder> $arguments */
    private function construction(Node\Name $name, array $arguments): void
    {
        $classes = $this->classes($name);
        $this->call("new {$name->toString()}()", \array_map(static fn(string $class): ?\ReflectionMethod => (new \ReflectionClass($class))->getConstructor(), $classes), $arguments);
    }

    private function staticCall(Expr\StaticCall $call): void
    {
        \assert($call->class instanceof Node\Name && $call->name instanceof Node\Identifier);
        $method = $call->name->toString();
        $classes = $this->classes($call->class);
        $found = \array_values(\array_filter($classes, static fn(string $class): bool => \method_exists($class, $method)));
        if ($classes !== [] && $found === []) {
            $this->problems[] = "there is no method {$call->class->toString()}::$method()";
        }
        $this->call("{$call->class->toString()}::$method()", \array_map(static fn(string $class): \ReflectionMethod => new \ReflectionMethod($class, $method), $found), $call->args);
    }

    private function constant(Expr\ClassConstFetch $constant): void
    {
        \assert($constant->class instanceof Node\Name && $constant->name instanceof Node\Identifier);
        $classes = $this->classes($constant->class);
        $name = $constant->name->toString();
        if ($name !== 'class' && $classes !== [] && \array_filter($classes, static fn(string $class): bool => \defined("$class::$name")) === []) {
            $this->problems[] = "there is no {$constant->class->toString()}::$name";
        }
    }

    private function methodCall(Expr\MethodCall|Expr\NullsafeMethodCall $call): void
    {
        \assert($call->name instanceof Node\Identifier);
        $class = $this->typeOf($call->var);
        $method = $call->name->toString();
        if ($class === null) {
            return;
        }
        if (!\method_exists($class, $method)) {
            \method_exists($class, '__call') || $this->problems[] = "there is no method $class::$method()";

            return;
        }
        $this->call("$class::$method()", [new \ReflectionMethod($class, $method)], $call->args);
    }

    private function functionCall(Expr\FuncCall $call): void
    {
        \assert($call->name instanceof Node\Name);
        $name = $call->name->toString();
        $full = \str_starts_with($name, 'Weft\\') ? $name : "Weft\\$name";
        if (\function_exists($full) && !\function_exists($name)) {
            $this->call("$full()", [new \ReflectionFunction($full)], $call->args);
        } elseif (\str_starts_with($name, 'Weft\\') && !\function_exists($name)) {
            $this->problems[] = "there is no function $name()";
        }
    }

    /**
     * One of the functions must take the arguments.
     *
     * @param list<\ReflectionFunctionAbstract|null> $functions null is a class without a constructor
     * @param array<Node\Arg|Node\VariadicPlaceholder> $arguments
     */
    private function call(string $what, array $functions, array $arguments): void
    {
        $problems = \array_map(static fn(?\ReflectionFunctionAbstract $function): ?string => self::mismatch($function, $arguments), $functions);
        if ($problems !== [] && !\in_array(null, $problems, true)) {
            $this->problems[] = "$what: $problems[0]";
        }
    }

    /** @param array<Node\Arg|Node\VariadicPlaceholder> $arguments */
    private static function mismatch(?\ReflectionFunctionAbstract $function, array $arguments): ?string
    {
        $parameters = $function === null ? [] : $function->getParameters();
        $names = \array_map(static fn(\ReflectionParameter $parameter): string => $parameter->getName(), $parameters);
        $isVariadic = $function !== null && $function->isVariadic();
        $given = [];
        foreach (\array_values($arguments) as $at => $argument) {
            // `f(...)`, `f(...$list)` and `f(…)` say nothing of how many there are.
            if (!$argument instanceof Node\Arg || $argument->unpack || self::isEllipsis($argument->value)) {
                return null;
            }
            $name = $argument->name?->toString() ?? $names[$at] ?? null;
            if ($name === null && !$isVariadic) {
                return 'takes ' . \count($parameters) . ' arguments, not ' . \count($arguments);
            }
            if ($name !== null && !\in_array($name, $names, true) && !$isVariadic) {
                return "has no parameter \$$name";
            }
            $given[] = $name;
        }
        foreach ($parameters as $parameter) {
            if (!$parameter->isOptional() && !\in_array($parameter->getName(), $given, true)) {
                return "needs \${$parameter->getName()}";
            }
        }

        return null;
    }

    private static function isEllipsis(Expr $value): bool
    {
        return $value instanceof Expr\ConstFetch && \str_contains($value->name->toString(), '…');
    }

    /** @return class-string|null */
    private function typeOf(Expr $expression): ?string
    {
        return match (true) {
            $expression instanceof Expr\Variable => \is_string($expression->name) ? $this->variables[$expression->name] ?? null : null,
            $expression instanceof Expr\New_ => $expression->class instanceof Node\Name ? $this->only($expression->class) : null,
            $expression instanceof Expr\Clone_ => $this->typeOf($expression->expr),
            $expression instanceof Expr\Assign => $this->typeOf($expression->expr),
            $expression instanceof Expr\StaticCall && $expression->class instanceof Node\Name && $expression->name instanceof Node\Identifier
                => self::returned($this->only($expression->class), $expression->name->toString()),
            $expression instanceof Expr\MethodCall && $expression->name instanceof Node\Identifier
                => self::returned($this->typeOf($expression->var), $expression->name->toString()),
            default => null,
        };
    }

    /**
     * @param class-string|null $class
     *
     * @return class-string|null
     */
    private static function returned(?string $class, string $method): ?string
    {
        if ($class === null || !\method_exists($class, $method)) {
            return null;
        }
        $type = (new \ReflectionMethod($class, $method))->getReturnType();
        $name = $type instanceof \ReflectionNamedType ? $type->getName() : '';

        return match (true) {
            $name === 'self', $name === 'static' => $class,
            \str_starts_with($name, 'Weft\\') && self::exists($name) === true => $name,
            default => null,
        };
    }

    /** @return class-string|null the class of Weft, if it is certain which one is meant */
    private function only(Node\Name $name): ?string
    {
        $classes = $this->classes($name);

        return \count($classes) === 1 ? $classes[0] : null;
    }

    /** @return list<class-string> the classes of Weft that the name may mean; none for a class of the application */
    private function classes(Node\Name $name): array
    {
        $text = $name->toString();
        if (\str_starts_with($text, 'Weft\\')) {
            return self::exists($text) === true ? [$text] : [];
        }
        if (isset($this->declared[$text]) || $name->isFullyQualified()) {
            return [];
        }
        $parts = \explode('\\', $text, 2);
        if (isset($this->imports[$parts[0]])) {
            $full = $this->imports[$parts[0]] . (isset($parts[1]) ? "\\$parts[1]" : '');

            return \str_starts_with($full, 'Weft\\') && self::exists($full) === true ? [$full] : [];
        }

        return self::exists($text) === true ? [] : $this->known[$text] ?? [];
    }

    /** @return bool|null null for a class of a bridge whose library is not installed: its file is there, but cannot be loaded */
    private static function exists(string $class): ?bool
    {
        try {
            return \class_exists($class) || \interface_exists($class) || \trait_exists($class);
        } catch (\Error) {
            return null;
        }
    }
}
