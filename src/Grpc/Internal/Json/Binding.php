<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal\Json;

use Weft\Grpc\Call;
use Weft\Grpc\Status;
use Weft\Grpc\StatusException;
use Weft\Internal\Codec\JsonMemory;
use Weft\Protobuf\DecodingException;
use Weft\Protobuf\Descriptor\FieldDescriptorProto;
use Weft\Protobuf\EncodingException;
use Weft\Protobuf\Internal\Names;
use Weft\Protobuf\Json;
use Weft\Protobuf\Message;
use Weft\Protobuf\WellKnown\Any;

/**
 * An HTTP binding of a method (`google.api.http`).
 *
 * @internal
 */
final class Binding
{
    /**
     * @param string $verb the HTTP method; `*` is any
     * @param string $path `/v1/users/{id}`
     * @param string $body the request field that the body maps to; `*` maps the whole request, `''` none
     * @param string $responseBody the response property that is sent; `''` sends the whole response
     * @param class-string<Message> $request
     */
    public function __construct(
        public readonly string $verb,
        public readonly string $path,
        private readonly string $body,
        private readonly string $responseBody,
        private readonly string $request,
        private readonly Messages $messages,
    ) {
    }

    /** @throws StatusException the request does not fit the method */
    public function request(Call $call): Message
    {
        $parameters = new Parameters($this->messages, $this->request::typeName());
        if ($this->body !== '*') {
            $parameters->addQuery($call->query());
        } elseif ($call->query() !== '') {
            throw new StatusException(Status::InvalidArgument, "{$call->method()} takes its request from the body, not from the query \"{$call->query()}\"");
        }
        // The path is applied last, so that neither body nor query overrides it.
        foreach ($call->variables() as $field => $value) {
            $parameters->addVariable($field, $value);
        }
        try {
            $message = Json::decode($this->request, $this->content($call), memory: $call->messageMemory());
            $paths = $parameters->paths();
            if ($paths !== []) {
                $other = Json::decode($this->request, $parameters->json(), memory: $call->messageMemory());
                foreach ($paths as $path) {
                    $this->copy($other, $message, $path);
                }
            }
        } catch (DecodingException $error) {
            // Class names are not shown to clients.
            $place = \preg_replace('/^Cannot decode \S+: /', '', $error->getMessage());
            throw new StatusException($error->isTooLarge ? Status::ResourceExhausted : Status::InvalidArgument, "the request is not of type {$this->request::typeName()}: $place", previous: $error);
        }

        return $message;
    }

    /** The body of a unary response. */
    public function response(Message $message): string
    {
        if ($this->responseBody === '') {
            return Json::encode($message);
        }
        $field = $this->messages->path($message::typeName(), $this->responseBody)[0] ?? null;
        if ($field === null || $message->{Names::property((string) $field->name)} === null) {
            return 'null';
        }
        $whole = \json_decode(Json::encode($message), flags: \JSON_BIGINT_AS_STRING | \JSON_THROW_ON_ERROR);
        $value = $whole->{(string) $field->jsonName} ?? null;

        return $value === null ? $this->messages->unset($field) : (string) \json_encode($value, \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_PRESERVE_ZERO_FRACTION);
    }

    /** A message of a streamed response, as one line. */
    public function line(Message $message): string
    {
        return '{"result":' . $this->response($message) . "}\n";
    }

    /** @return string a list in JSON */
    public static function details(\Throwable $error): string
    {
        $details = [];
        foreach ($error instanceof StatusException ? $error->details : [] as $detail) {
            $any = $detail instanceof Any ? $detail : Any::pack($detail);
            try {
                $details[] = Json::encode($any);
            } catch (EncodingException) {
                // The type is unknown.
                $details[] = (string) \json_encode(['@type' => $any->typeUrl, 'value' => \base64_encode($any->value)], \JSON_UNESCAPED_SLASHES);
            }
        }

        return '[' . \implode(',', $details) . ']';
    }

    /** The body as the whole request in JSON. */
    private function content(Call $call): string
    {
        $json = $call->message();
        if ($json === '') {
            return '{}';
        }
        if ($this->body === '*') {
            return $json;
        }
        if ($this->body === '') {
            throw new StatusException(Status::InvalidArgument, "{$call->method()} takes no body");
        }
        // The body must be a single JSON value: otherwise it could set other fields of the request.
        if (($problem = JsonMemory::problem($json, $call->messageMemory())) !== null) {
            throw new StatusException(Status::ResourceExhausted, "The body {$problem}");
        }
        \json_decode($json, flags: \JSON_BIGINT_AS_STRING);
        if (\json_last_error() !== \JSON_ERROR_NONE) {
            throw new StatusException(Status::InvalidArgument, 'The body is not valid JSON: ' . \json_last_error_msg());
        }

        return '{"' . $this->body . '":' . $json . '}';
    }

    /**
     * @param non-empty-list<FieldDescriptorProto> $path
     *
     * @throws StatusException another member of the field's oneof is set
     */
    private function copy(object $from, object $to, array $path): void
    {
        $type = $this->request::typeName();
        $last = \array_pop($path);
        foreach ($path as $field) {
            $name = Names::property((string) $field->name);
            if ($to->$name === null || $from->$name === null) {
                $this->refuseSecondMember($to, $type, $field);
                $to->$name = $from->$name;

                return;
            }
            $from = $from->$name;
            $to = $to->$name;
            $type = \ltrim((string) $field->typeName, '.');
        }
        $this->refuseSecondMember($to, $type, $last);
        $name = Names::property((string) $last->name);
        $to->$name = $from->$name;
    }

    /** Decoding sees body and parameters apart, so it does not notice that they set two members. */
    private function refuseSecondMember(object $message, string $type, FieldDescriptorProto $field): void
    {
        foreach ($this->messages->others($type, $field) as $other) {
            if ($message->{Names::property((string) $other->name)} !== null) {
                throw new StatusException(Status::InvalidArgument, "\"$field->name\" and \"$other->name\" are of the oneof {$this->messages->oneof($type, $field)}, of which one may be set");
            }
        }
    }
}
