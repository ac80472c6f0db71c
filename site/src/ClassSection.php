<?php

declare(strict_types=1);

namespace Weft\Site;

use Weft\Internal\ErrorDocumentation;

/** The section of one class, interface or enum, or of one function, on the page of its namespace. */
final class ClassSection
{
    public function __construct(private readonly Names $names) {}

    /** @param \ReflectionClass<object> $class */
    public function of(\ReflectionClass $class): string
    {
        $comment = DocBlock::of($class->getDocComment());
        $parts = [
            "## {$class->getShortName()} {: #{$class->getShortName()} }",
            Markdown::code(Signature::ofClass($class)),
            $this->text($comment->text, $class),
            $class->implementsInterface(\Throwable::class) && !$class->isInterface() ? Markdown::link('What to do about it', '../../errors/' . ErrorDocumentation::ofClass($class->getName())->name . '.md') : '',
            $this->constants($class),
            $this->constructor($class),
            $this->properties($class),
        ];
        foreach ($class->getMethods() as $method) {
            if ($method->class === $class->getName() && !$method->isConstructor() && Signature::isShown($method) && self::isWritten($method, $class)) {
                $parts[] = $this->method($method, $class);
            }
        }

        return \implode("\n\n", \array_filter($parts)) . "\n";
    }

    public function ofFunction(\ReflectionFunction $function): string
    {
        $comment = DocBlock::of($function->getDocComment());
        $text = fn(string $text): string => $this->names->text($text, (string) $function->getFileName(), $function->getNamespaceName());

        return \implode("\n\n", \array_filter([
            "## {$function->getShortName()}() {: #{$function->getShortName()} }",
            Markdown::code(Signature::ofFunction($function, $function->getNamespaceName())),
            $text($comment->text),
            $this->call($function, $comment, $text, $function->getNamespaceName()),
        ])) . "\n";
    }

    /**
     * The table of a constructor's parameters.
     *
     * @param list<\ReflectionParameter> $parameters
     * @param \Closure(string): string $text
     */
    public function parameters(array $parameters, DocBlock $comment, \Closure $text): string
    {
        $rows = [];
        foreach ($parameters as $parameter) {
            $documented = $comment->parameter($parameter->getName());
            $said = $documented['text'];
            if ($said === '' && $parameter->isPromoted()) {
                $class = $parameter->getDeclaringClass();
                $said = $class === null ? '' : DocBlock::of($class->getProperty($parameter->getName())->getDocComment())->text;
            }
            $rows[] = [
                "`\${$parameter->getName()}`",
                '`' . ($documented['type'] ?: Signature::type($parameter->getType(), '')) . '`',
                $parameter->isDefaultValueAvailable() ? '`' . \strtr(Signature::default($parameter), ['`' => '']) . '`' : ($parameter->isVariadic() ? '' : 'required'),
                $text($said),
            ];
        }

        return $rows === [] ? '' : Markdown::table(['parameter', 'type', 'default', ''], $rows);
    }

    /** @param \ReflectionClass<object> $class */
    private function constants(\ReflectionClass $class): string
    {
        $rows = [];
        foreach ($class->getReflectionConstants(\ReflectionClassConstant::IS_PUBLIC) as $constant) {
            $comment = DocBlock::of($constant->getDocComment());
            if ($constant->getDeclaringClass()->getName() === $class->getName() && !$comment->isInternal()) {
                $value = $constant->getValue();
                $value = $value instanceof \BackedEnum ? $value->value : $value;
                $rows[] = ["`{$constant->getName()}`", $value instanceof \UnitEnum ? '' : '`' . \json_encode($value, \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE) . '`', $this->text($comment->text, $class)];
            }
        }

        return $rows === [] ? '' : Markdown::table([$class->isEnum() ? 'case' : 'constant', 'value', ''], $rows);
    }

    /** @param \ReflectionClass<object> $class */
    private function constructor(\ReflectionClass $class): string
    {
        $constructor = $class->getConstructor();
        if ($constructor === null || $constructor->class !== $class->getName() || !Signature::isShown($constructor)) {
            return '';
        }
        $comment = DocBlock::of($constructor->getDocComment());
        $text = fn(string $text): string => $this->text($text, $class);

        return \implode("\n\n", \array_filter(["### {$class->getShortName()}::__construct() {: #{$class->getShortName()}.__construct }", $text($comment->text), $this->call($constructor, $comment, $text, $class->getNamespaceName(), withResult: false)]));
    }

    /** @param \ReflectionClass<object> $class */
    private function properties(\ReflectionClass $class): string
    {
        $rows = [];
        $constructor = $class->getConstructor();
        $documented = DocBlock::of($constructor === null ? false : $constructor->getDocComment());
        $isConstructed = $constructor !== null && Signature::isShown($constructor);
        foreach ($class->getProperties(\ReflectionProperty::IS_PUBLIC) as $property) {
            $comment = DocBlock::of($property->getDocComment());
            // Parameters of the constructor have their row above.
            if ($property->class !== $class->getName() || $comment->isInternal() || $property->isPromoted() && $isConstructed || $class->isEnum()) {
                continue;
            }
            $variable = $comment->variable();
            $parameter = $documented->parameter($property->getName());
            $rows[] = [
                "`\${$property->getName()}`",
                '`' . ($variable['type'] ?: $parameter['type'] ?: Signature::type($property->getType(), '')) . '`',
                $this->text(\trim("$comment->text {$variable['text']}") ?: $parameter['text'], $class),
            ];
        }

        return $rows === [] ? '' : Markdown::table(['property', 'type', ''], $rows);
    }

    /** @param \ReflectionClass<object> $class */
    private function method(\ReflectionMethod $method, \ReflectionClass $class): string
    {
        $comment = DocBlock::of($method->getDocComment());
        $text = fn(string $text): string => $this->text($text, $class);

        return \implode("\n\n", \array_filter([
            "### {$class->getShortName()}::{$method->getName()}() {: #{$class->getShortName()}.{$method->getName()} }",
            Markdown::code(Signature::ofFunction($method, $class->getNamespaceName())),
            $text($comment->text),
            $this->call($method, $comment, $text, $class->getNamespaceName()),
        ]));
    }

    /**
     * Parameters, result and exceptions, as far as there is more to say than the signature does.
     *
     * @param \Closure(string): string $text
     */
    private function call(\ReflectionFunctionAbstract $function, DocBlock $comment, \Closure $text, string $namespace, bool $withResult = true): string
    {
        $isDocumented = static fn(\ReflectionParameter $parameter): bool => !$withResult || $comment->parameter($parameter->getName()) !== ['type' => '', 'text' => ''];
        $parameters = $function->getParameters();
        $result = $comment->result();
        $parts = [\array_filter($parameters, $isDocumented) === [] ? '' : $this->parameters($parameters, $comment, $text)];
        if ($withResult && $result['text'] . $result['type'] !== '' && $result['type'] !== 'void') {
            $parts[] = "Returns `{$result['type']}`" . ($result['text'] === '' ? '.' : ": {$text($result['text'])}.");
        }
        $failures = [];
        foreach ($comment->failures() as $failure) {
            $names = \array_map(
                fn(string $name): string => $this->names->link(Names::resolve($name, (string) $function->getFileName(), $namespace)),
                \explode('|', $failure['type']),
            );
            $failures[] = '- ' . \implode(', ', $names) . ($failure['text'] === '' ? '' : ": {$text($failure['text'])}");
        }
        $failures === [] || $parts[] = "Throws:\n\n" . \implode("\n", $failures);

        return \implode("\n\n", \array_filter($parts));
    }

    /**
     * Methods that PHP or a trait adds have no comment of their own.
     *
     * @param \ReflectionClass<object> $class
     */
    private static function isWritten(\ReflectionMethod $method, \ReflectionClass $class): bool
    {
        return !($class->isEnum() && \in_array($method->getName(), ['cases', 'from', 'tryFrom'], true)) && !\str_contains((string) $method->getFileName(), '/Internal/');
    }

    /** @param \ReflectionClass<object> $class */
    private function text(string $text, \ReflectionClass $class): string
    {
        return $this->names->text($text, (string) $class->getFileName(), $class->getNamespaceName(), $class->getName());
    }
}
