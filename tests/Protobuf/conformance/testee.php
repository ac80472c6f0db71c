<?php

declare(strict_types=1);

/*
 * What the conformance runner of google/protobuf talks to: length-prefixed ConformanceRequests on standard input, as many
 * ConformanceResponses on standard output.
 */

use Conformance\ConformanceRequest;
use Conformance\ConformanceResponse;
use Conformance\WireFormat;
use Weft\Protobuf\Codec;
use Weft\Protobuf\DecodingException;
use Weft\Protobuf\Json;
use Weft\Protobuf\ProtobufException;

require __DIR__ . '/../../../autoload.php';

$generated = $argv[1] ?? throw new RuntimeException('usage: testee.php DIRECTORY_OF_GENERATED_CLASSES');
spl_autoload_register(static function (string $class) use ($generated): void {
    $file = $generated . '/' . strtr($class, '\\', '/') . '.php';
    if (is_file($file)) {
        require $file;
    }
});

const CLASSES = [
    'protobuf_test_messages.proto2.TestAllTypesProto2' => ProtobufTestMessages\Proto2\TestAllTypesProto2::class,
    'protobuf_test_messages.proto3.TestAllTypesProto3' => ProtobufTestMessages\Proto3\TestAllTypesProto3::class,
    'protobuf_test_messages.editions.TestAllTypesEdition2023' => ProtobufTestMessages\Editions\TestAllTypesEdition2023::class,
    'protobuf_test_messages.editions.proto2.TestAllTypesProto2' => ProtobufTestMessages\Editions\Proto2\TestAllTypesProto2::class,
    'protobuf_test_messages.editions.proto3.TestAllTypesProto3' => ProtobufTestMessages\Editions\Proto3\TestAllTypesProto3::class,
    'conformance.FailureSet' => Conformance\FailureSet::class,
];

function answer(ConformanceRequest $request): ConformanceResponse
{
    $class = CLASSES[$request->messageType] ?? null;
    if ($class === null) {
        return new ConformanceResponse(skipped: "no class for {$request->messageType}");
    }
    if ($request->payloadCase() === 'textPayload' || $request->payloadCase() === 'jspbPayload') {
        return new ConformanceResponse(skipped: 'only bytes and JSON');
    }
    try {
        $message = $request->payloadCase() === 'jsonPayload'
            ? Json::decode($class, $request->jsonPayload, ignoreUnknown: $request->testCategory === Conformance\TestCategory::JSON_IGNORE_UNKNOWN_PARSING_TEST)
            : Codec::decode($class, $request->protobufPayload ?? '');
    } catch (DecodingException $e) {
        return new ConformanceResponse(parseError: $e->getMessage());
    }
    try {
        return match ($request->requestedOutputFormat) {
            WireFormat::PROTOBUF => new ConformanceResponse(protobufPayload: Codec::encode($message)),
            WireFormat::JSON => new ConformanceResponse(jsonPayload: Json::encode($message)),
            default => new ConformanceResponse(skipped: 'only bytes and JSON'),
        };
    } catch (ProtobufException $e) {
        return new ConformanceResponse(serializeError: $e->getMessage());
    }
}

function take(int $length): ?string
{
    $bytes = '';
    while (strlen($bytes) < $length) {
        $more = fread(STDIN, $length - strlen($bytes));
        if ($more === '' || $more === false) {
            return null;
        }
        $bytes .= $more;
    }

    return $bytes;
}

while (($prefix = take(4)) !== null) {
    try {
        $response = answer(Codec::decode(ConformanceRequest::class, (string) take(unpack('V', $prefix)[1])));
    } catch (Throwable $e) {
        $response = new ConformanceResponse(runtimeError: $e::class . ': ' . $e->getMessage() . " at {$e->getFile()}:{$e->getLine()}");
    }
    $bytes = Codec::encode($response);
    fwrite(STDOUT, pack('V', strlen($bytes)) . $bytes);
}
