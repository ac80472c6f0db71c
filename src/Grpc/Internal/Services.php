<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal;

use Weft\Grpc\InvalidService;

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
     * @throws InvalidService
     */
    public function __construct(array $objects)
    {
        $interfaces = $methods = [];
        foreach ($objects as $object) {
            foreach (self::interfacesOf($object) as $service => $interface) {
                if (isset($interfaces[$service])) {
                    throw new InvalidService("The service $service is served twice, the second time by " . $object::class);
                }
                $interfaces[$service] = $interface;
                \array_push($methods, ...self::methodsOf($object, $service, $interface));
            }
        }
        $this->interfaces = $interfaces;
        $this->methods = $methods;
    }

    /** @return list<class-string> the files that describe the services, where that is known */
    public function files(): array
    {
        $files = [];
        foreach ($this->interfaces as $interface) {
            if (\defined("$interface::FILE")) {
                $files[] = $interface::FILE;
            }
        }

        return \array_values(\array_unique($files));
    }

    /** @return non-empty-array<string, class-string> */
    private static function interfacesOf(object $object): array
    {
        $interfaces = [];
        foreach (\class_implements($object) as $interface) {
            if (\defined("$interface::SERVICE") && \defined("$interface::METHODS")) {
                $interfaces[$interface::SERVICE] = $interface;
            }
        }
        if ($interfaces === []) {
            throw new InvalidService($object::class . ' is no service: it implements no interface that protoc-gen-weft made of one');
        }

        return $interfaces;
    }

    /** @return list<Method> */
    private static function methodsOf(object $object, string $service, string $interface): array
    {
        $methods = [];
        foreach ($interface::METHODS as $name => [$function, $request, $response, $clientStreams, $serverStreams]) {
            $methods[] = new Method("/$service/$name", $object->$function(...), $request, $response, $clientStreams, $serverStreams);
        }

        return $methods;
    }
}
