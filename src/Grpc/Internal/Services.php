<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal;

use Weft\Grpc\Call;
use Weft\Grpc\InvalidServiceError;
use Weft\Protobuf\File;

/**
 * What the generated interfaces of some objects say they serve.
 *
 * @internal
 */
final class Services
{
    /** @var array<string, class-string> full names of the services, and their interfaces */
    public readonly array $interfaces;
    /** @var list<Method> */
    public readonly array $methods;

    /**
     * @param list<object> $objects
     *
     * @throws InvalidServiceError
     */
    public function __construct(array $objects)
    {
        $interfaces = $methods = [];
        foreach ($objects as $object) {
            foreach (self::interfacesOf($object) as $service => $interface) {
                if (isset($interfaces[$service])) {
                    throw new InvalidServiceError("The service $service is served twice, the second time by " . $object::class);
                }
                $interfaces[$service] = $interface;
                \array_push($methods, ...self::methodsOf($object, $service, $interface));
            }
        }
        $this->interfaces = $interfaces;
        $this->methods = $methods;
    }

    /** @return list<class-string<File>> the files that describe the services, where that is known */
    public function files(): array
    {
        /** @var list<class-string<File>> $files */
        $files = [];
        foreach ($this->interfaces as $interface) {
            if (\defined("$interface::FILE")) {
                $files[] = $interface::FILE;
            }
        }

        /** @var list<class-string<File>> */
        return \array_values(\array_unique($files));
    }

    /** @return non-empty-array<string, class-string> */
    private static function interfacesOf(object $object): array
    {
        /** @var array<string, class-string> $interfaces */
        $interfaces = [];
        foreach ((new \ReflectionClass($object))->getInterfaceNames() as $interface) {
            if (\defined("$interface::SERVICE") && \defined("$interface::METHODS")) {
                /** @var string $service */
                $service = $interface::SERVICE;
                $interfaces[$service] = $interface;
            }
        }
        if ($interfaces === []) {
            throw new InvalidServiceError($object::class . ' is no service: it implements no interface that protoc-gen-weft made of one');
        }

        return $interfaces;
    }

    /**
     * @param class-string $interface
     *
     * @return list<Method>
     */
    private static function methodsOf(object $object, string $service, string $interface): array
    {
        $methods = [];
        /** @var array<string, array{string, class-string, class-string, bool, bool}> $table */
        $table = $interface::METHODS;
        foreach ($table as $name => [$function, $request, $response, $clientStreams, $serverStreams]) {
            /** @var callable(mixed, Call): mixed $handler */
            $handler = [$object, $function];
            $methods[] = new Method("/$service/$name", \Closure::fromCallable($handler), $request, $response, $clientStreams, $serverStreams);
        }

        return $methods;
    }
}
