<?php

declare(strict_types=1);

namespace Weft\Protobuf\Internal\Generator;

use Weft\Protobuf\Descriptor\MethodDescriptorProto;
use Weft\Protobuf\Descriptor\ServiceDescriptorProto;
use Weft\Protobuf\Internal\Names;

/**
 * A service as the interface a server implements, and as the class a client calls.
 *
 * @internal
 */
final class ServiceWriter
{
    private readonly string $name;

    /** @param int $index of the service in its file */
    public function __construct(
        private readonly Catalogue $catalogue,
        private readonly SourceFile $file,
        private readonly ServiceDescriptorProto $service,
        private readonly int $index,
    ) {
        $this->name = \ltrim("{$file->package}.{$service->name}", '.');
        $methods = [];
        foreach ($service->method as $method) {
            $name = \strtolower(Names::method($method->name ?? ''));
            if (isset($methods[$name])) {
                throw new GenerationException("{$file->name}: {$this->name}.{$method->name} and {$methods[$name]} would both become the method {$name}()");
            }
            $methods[$name] = $method->name;
        }
    }

    public function interface(Code $code): string
    {
        $table = $functions = '';
        foreach ($this->service->method as $index => $method) {
            [$request, $response] = $this->types($method, $code);
            $flags = ($method->clientStreaming === true ? 'true' : 'false') . ', ' . ($method->serverStreaming === true ? 'true' : 'false');
            $name = Names::method($method->name ?? '');
            $table .= '        ' . Code::string($method->name ?? '') . " => ['{$name}', {$request}::class, {$response}::class, {$flags}],\n";
            $functions .= "\n" . $this->doc($method, $index, $request, $response)
                . "    public function {$name}(" . self::parameter($method, $request) . ", \\Weft\\Grpc\\Call \$call): " . self::result($method, $response) . ";\n";
        }
        $table = $table === '' ? '[]' : "[\n{$table}    ]";
        $name = Code::string($this->name);

        return Code::doc([$this->file->comment([6, $this->index]) ?: "The service {$this->name}; implement it to serve it.", ...$this->deprecation()])
            . "interface {$code->shortName()}\n{\n"
            . "    final public const SERVICE = {$name};\n"
            . "    /** @var class-string<\\Weft\\Protobuf\\File> */\n"
            . "    final public const FILE = {$code->name($this->file->fileClass())}::class;\n"
            . "    /** Per method: PHP method, class of the request, class of the response, whether the client streams, whether the server does. */\n"
            . "    final public const METHODS = {$table};\n"
            . "{$functions}}\n";
    }

    public function client(Code $code): string
    {
        $functions = '';
        foreach ($this->service->method as $index => $method) {
            [$request, $response] = $this->types($method, $code);
            $name = Names::method($method->name ?? '');
            $call = match ([$method->clientStreaming === true, $method->serverStreaming === true]) {
                [false, false] => 'unary',
                [false, true] => 'serverStreaming',
                [true, false] => 'clientStreaming',
                [true, true] => 'bidiStreaming',
            };
            $argument = $method->clientStreaming === true ? '$requests' : '$request';
            $path = Code::string("/{$this->name}/{$method->name}");
            $functions .= "\n" . $this->doc($method, $index, $request, $response, [
                '@param float|null $timeout seconds until the call is cancelled; null leaves it to the channel',
                '@param array<string, string|list<string>> $metadata names in lower case; values of names that end in `-bin` are bytes',
            ]) . "    public function {$name}(" . self::parameter($method, $request) . ', ?float $timeout = null, array $metadata = []): '
                . self::result($method, $response) . "\n    {\n"
                . "        return \$this->channel->{$call}({$path}, {$argument}, {$response}::class, \$timeout, \$metadata);\n    }\n";
        }

        return Code::doc(["Calls the service {$this->name}.", ...$this->deprecation()])
            . "final class {$code->shortName()}\n{\n"
            . "    public function __construct(private readonly \\Weft\\Grpc\\Client\\Channel \$channel)\n    {\n    }\n{$functions}}\n";
    }

    /** @return list<string> */
    private function deprecation(): array
    {
        return $this->service->options?->deprecated === true ? ['', '@deprecated'] : [];
    }

    /** @return array{string, string} */
    private function types(MethodDescriptorProto $method, Code $code): array
    {
        $symbol = "{$this->file->name}: {$this->name}.{$method->name}";

        return [
            $code->name($this->catalogue->type($method->inputType, $symbol)->class),
            $code->name($this->catalogue->type($method->outputType, $symbol)->class),
        ];
    }

    /** @param list<string> $more */
    private function doc(MethodDescriptorProto $method, int $index, string $request, string $response, array $more = []): string
    {
        $comment = $this->file->comment([6, $this->index, 2, $index]);
        $tags = $method->clientStreaming === true ? ["@param iterable<{$request}> \$requests", ...$more] : $more;
        if ($method->serverStreaming === true) {
            $tags[] = "@return iterable<{$response}>";
        }
        if ($method->options?->deprecated === true) {
            $tags[] = '@deprecated';
        }

        return Code::doc([...($comment === '' ? [] : [$comment]), ...($comment === '' || $tags === [] ? [] : ['']), ...$tags], '    ');
    }

    private static function parameter(MethodDescriptorProto $method, string $request): string
    {
        return $method->clientStreaming === true ? 'iterable $requests' : "{$request} \$request";
    }

    private static function result(MethodDescriptorProto $method, string $response): string
    {
        return $method->serverStreaming === true ? 'iterable' : $response;
    }
}
