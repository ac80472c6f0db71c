<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Schema;

use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\Internal\Codec\MessageClass;
use Weft\Bus\InvalidUpcasterException;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\Upcaster;
use Weft\Internal\AttributeArea;
use Weft\Internal\AttributeCheck;
use Weft\Internal\Codec\MismatchException;

/**
 * The registered upcasters, by message type and version.
 *
 * @internal
 */
final class Upcasters
{
    /** @var array<string, array<int, \Closure(array): array>> by message type and the version they take */
    private array $steps = [];

    public function __construct(private readonly Codec $codec) {}

    /**
     * The marked methods of an object, by message type and the version they take; registers none.
     *
     * @return array<string, array<int, \Closure(array): array>>
     * @throws InvalidUpcasterException|\Weft\Bus\InvalidMessageClassError
     */
    public function compile(object $service): array
    {
        /** @var array<string, array<int, \Closure(array): array>> $steps */
        $steps = [];
        foreach ((new \ReflectionObject($service))->getMethods() as $method) {
            if (($unknown = AttributeCheck::on($method, AttributeArea::Bus)) !== null) {
                throw new InvalidUpcasterException("Upcaster {$method->class}::{$method->name}() {$unknown}");
            }
            foreach ($method->getAttributes(Upcaster::class) as $attribute) {
                $upcaster = $attribute->newInstance();
                $type = $this->check($method, $upcaster, $steps);
                /** @var \Closure(array): array $step */
                $step = $method->getClosure($service);
                $steps[$type][$upcaster->from] = $step;
            }
        }

        return $steps;
    }

    /** @param array<string, array<int, \Closure(array): array>> $steps as {@see compile()} returns them */
    public function add(array $steps): void
    {
        foreach ($steps as $type => $ofType) {
            $this->steps[$type] = ($this->steps[$type] ?? []) + $ofType;
        }
    }

    /** @return list<int> the versions of a type that are brought to the next */
    public function of(string $type): array
    {
        $from = \array_keys($this->steps[$type] ?? []);
        \sort($from);

        return $from;
    }

    /**
     * @param array<string, mixed> $data of version `$from`
     * @return array<string, mixed> of the version of the class
     * @throws MessageDecodingException
     */
    public function bring(MessageClass $class, array $data, int $from): array
    {
        for ($version = $from; $version < $class->version; $version++) {
            $step = $this->steps[$class->type][$version] ?? null;
            if ($step !== null) {
                $data = self::step($step, $class, $data, $version);
            }
        }

        /** @var array<string, mixed> $data */
        return $data;
    }

    /**
     * @param array<string, array<int, \Closure(array): array>> $others of the same object
     * @return string the message type
     */
    private function check(\ReflectionMethod $method, Upcaster $upcaster, array $others): string
    {
        $name = "Upcaster {$method->class}::{$method->name}()";
        $class = $this->codec->of($upcaster->message);
        $parameter = $method->getParameters()[0] ?? null;
        $problem = match (true) {
            !$method->isPublic() || $method->isStatic() => 'must be public and not static',
            $method->getNumberOfRequiredParameters() !== 1 || (string) $parameter?->getType() !== 'array' => 'must take the body as its one parameter, an array',
            $upcaster->from >= $class->version => "takes version {$upcaster->from} of {$class->class}, which is at version {$class->version}",
            isset($this->steps[$class->type][$upcaster->from]) || isset($others[$class->type][$upcaster->from]) => "takes version {$upcaster->from} of {$class->class}, for which an upcaster is already registered",
            default => null,
        };
        if ($problem !== null) {
            throw new InvalidUpcasterException("{$name} {$problem}");
        }

        return $class->type;
    }

    /** @param \Closure(array): array $step */
    private static function step(\Closure $step, MessageClass $class, array $data, int $version): array
    {
        try {
            /** @var mixed $data an application may return anything */
            $data = $step($data);
        } catch (\Throwable $thrown) {
            throw MessageDecodingException::notUpcast($class->class, $version, $thrown->getMessage(), $thrown);
        }

        return \is_array($data) ? $data : throw MessageDecodingException::notUpcast($class->class, $version, 'the upcaster returned ' . MismatchException::typeOf($data));
    }
}
